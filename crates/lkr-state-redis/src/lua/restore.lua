-- Stores records of a snapshot. ARGV: 'begin', 'more' or 'end', the highest version, then keys and records.
local records, keys, expiry, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if ARGV[1] == 'begin' then
  local unfinished = redis.call('HGET', meta, 'restoring')
  if not unfinished and redis.call('ZCARD', keys) > 0 then return { 'occupied' } end
  redis.call('UNLINK', records, keys, expiry)
  redis.call('HSET', meta, 'restoring', 1)
end
for at = 3, #ARGV, 2 do
  local key, record = ARGV[at], ARGV[at + 1]
  local _, expires = header(record)
  redis.call('HSET', records, key, record)
  redis.call('ZADD', keys, 0, key)
  if expires > 0 then redis.call('ZADD', expiry, digits(expires), key) end
end
if ARGV[1] == 'end' then
  local last = math.max(tonumber(redis.call('HGET', meta, 'version') or 0), tonumber(ARGV[2]))
  redis.call('HSET', meta, 'version', digits(last))
  redis.call('HDEL', meta, 'restoring')
end
return { 'ok' }
