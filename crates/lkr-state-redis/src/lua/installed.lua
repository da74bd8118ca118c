-- Works on the installation that the caller opened, and on no other: a server that was emptied must not look like a store
-- without records. KEYS[1] is `meta`, ARGV[1] the name of the installation.
local meta = KEYS[1]
if redis.call('HGET', meta, 'installation') ~= ARGV[1] then
  return redis.error_reply('EMPTIED the store was emptied or replaced since it was opened')
end
