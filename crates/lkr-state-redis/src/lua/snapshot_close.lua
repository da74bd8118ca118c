-- Ends a snapshot. ARGV: its place and its id.
local snapshots, kept = KEYS[1], KEYS[2]
local registered = redis.call('HGET', snapshots, ARGV[1])
if registered and registered:sub(1, 16) == ARGV[2] then
  redis.call('HDEL', snapshots, ARGV[1])
  redis.call('UNLINK', kept)
end
return { 'ok' }
