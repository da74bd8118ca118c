-- Applies the writes of a step, or none of them.
-- ARGV: installation, deadline, largest version seen, then for each write its key, expectation ('*', '-' or a version), operation
-- ('put', 'delete', 'increment' or 'check'), value, and time to live in milliseconds ('-' if it never expires).
local records, keys, expiry, snapshots = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local FIRST_KEPT = 6
-- The number of expired records that a step removes besides its own work.
local SWEPT = 20

local answer = answered()
if answer then return answer end

local writes = (#ARGV - 3) / 5
-- The version and the expiry of the stored records by their number; 0 without a record.
local versions, expiries = {}, {}
local changes = false
for write = 1, writes do
  local at = write * 5 - 1
  local record = redis.call('HGET', records, ARGV[at])
  local version, expires = 0, 0
  if record then version, expires = header(record) end
  versions[write], expiries[write] = version, expires
  changes = changes or ARGV[at + 2] ~= 'check'
  local live = version > 0 and is_live(expires)
  local expect = ARGV[at + 1]
  local holds = expect == '*' or (expect == '-' and not live)
    or (live and version == tonumber(expect))
  if not holds then
    return answer_with({ 'conflict', write, live and digits(version) or '-' })
  end
end
if not changes then return { 'ok', '0' } end

local version = next_number('version')

-- The open snapshots. What a reader that stopped renewing its snapshot left behind is removed.
local open = {}
local registered = redis.call('HGETALL', snapshots)
for at = 1, #registered, 2 do
  local kept = KEYS[FIRST_KEPT + registered[at]]
  local highest, lease_end = struct.unpack('>I8I8', registered[at + 1], 17)
  if lease_end > now then
    open[#open + 1] = { kept = kept, highest = highest }
  else
    redis.call('HDEL', snapshots, registered[at])
    redis.call('UNLINK', kept)
  end
end

-- Keeps the record for the open snapshots that contain it.
local function keep(key, old)
  for _, snapshot in ipairs(open) do
    if old > 0 and old <= snapshot.highest then
      redis.call('HSETNX', snapshot.kept, key, redis.call('HGET', records, key))
    end
  end
end

local function put(key, value, expires, old, old_expires)
  redis.call('HSET', records, key, struct.pack('>I8I8', version, expires) .. value)
  if old == 0 then redis.call('ZADD', keys, 0, key) end
  if expires > 0 then
    redis.call('ZADD', expiry, digits(expires), key)
  elseif old_expires > 0 then
    redis.call('ZREM', expiry, key)
  end
end

local function delete(key, old_expires)
  redis.call('HDEL', records, key)
  redis.call('ZREM', keys, key)
  if old_expires > 0 then redis.call('ZREM', expiry, key) end
end

-- The digits of a counter plus one. A value that is no number of 64 bits counts as 0; the largest one stays.
local function incremented(value)
  local number = value:match('^%+?0*(%d+)$')
  if not number then return '1' end
  if #number < 16 then return digits(number + 1) end
  local largest = '18446744073709551615'
  if #number > #largest or (#number == #largest and number > largest) then return '1' end
  if number == largest then return largest end
  local head, nines = number:match('^(.-)(9*)$')
  local zeros = string.rep('0', #nines)
  if head == '' then return '1' .. zeros end
  return head:sub(1, -2) .. digits(head:sub(-1) + 1) .. zeros
end

for write = 1, writes do
  local at = write * 5 - 1
  local key, operation = ARGV[at], ARGV[at + 2]
  local old, old_expires = versions[write], expiries[write]
  if operation ~= 'check' then keep(key, old) end
  if operation == 'put' then
    local ttl = ARGV[at + 4]
    local expires = ttl == '-' and 0 or now + ttl
    put(key, ARGV[at + 3], expires, old, old_expires)
  elseif operation == 'delete' and old > 0 then
    delete(key, old_expires)
  elseif operation == 'increment' then
    if old > 0 and is_live(old_expires) then
      local value = redis.call('HGET', records, key):sub(17)
      put(key, incremented(value), old_expires, old, old_expires)
    else
      put(key, '1', 0, old, old_expires)
    end
  end
end

-- No snapshot needs an expired record.
for _, key in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', digits(now), 'LIMIT', 0, SWEPT)) do
  delete(key, 1)
end

return answer_with({ 'ok', digits(version) })
