-- The records of a snapshot that have changed since. ARGV goes on with a cursor of HSCAN.
-- Returns the next cursor ('0' after the last page), then keys and records.
local snapshots, kept = KEYS[1], KEYS[2]
if not renew(snapshots) then return { 'lost' } end
local page = redis.call('HSCAN', kept, ARGV[4], 'COUNT', 50)
local found = { 'ok', page[1] }
for n, item in ipairs(page[2]) do found[2 + n] = item end
return found
