-- Names this installation unless it has a name. ARGV: the name. Returns the name, and whether a restore was interrupted.
local meta = KEYS[1]
redis.call('HSETNX', meta, 'installation', ARGV[1])
return { redis.call('HGET', meta, 'installation'), redis.call('HEXISTS', meta, 'restoring') }
