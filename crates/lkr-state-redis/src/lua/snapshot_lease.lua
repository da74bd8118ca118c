-- Renews the lease of a snapshot. ARGV begins with its place, its id and the lease in milliseconds. Returns its highest
-- version; nil if the lease has ended, after which the old records are gone.
local function renew(snapshots)
  local registered = redis.call('HGET', snapshots, ARGV[1])
  if not registered or registered:sub(1, 16) ~= ARGV[2] then return end
  local highest, lease_end = struct.unpack('>I8I8', registered, 17)
  if lease_end <= now then return end
  redis.call('HSET', snapshots, ARGV[1], ARGV[2] .. struct.pack('>I8I8', highest, now + ARGV[3]))
  return highest
end
