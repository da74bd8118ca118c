-- Registers a snapshot in a free place. ARGV: installation, the id of 16 bytes, the lease in milliseconds.
-- Returns the place and the highest version of its records.
local snapshots = KEYS[2]
local FIRST_KEPT = 3
local id, lease = ARGV[2], tonumber(ARGV[3])
local free
for place = 0, #KEYS - FIRST_KEPT do
  local registered = redis.call('HGET', snapshots, place)
  if registered and registered:sub(1, 16) == id then
    local highest = struct.unpack('>I8', registered, 17)
    return { 'ok', place, digits(highest) }
  end
  local _, lease_end = struct.unpack('>I8I8', registered or string.rep('\0', 32), 17)
  if lease_end <= now then free = free or place end
end
if not free then return { 'full' } end
local highest = tonumber(redis.call('HGET', meta, 'version') or 0)
redis.call('UNLINK', KEYS[FIRST_KEPT + free])
redis.call('HSET', snapshots, free, id .. struct.pack('>I8I8', highest, now + lease))
return { 'ok', free, digits(highest) }
