-- The records of a snapshot that have not changed since. ARGV goes on with the key after which the page begins and the
-- number of bytes after which it ends.
-- Returns the key after which the next page begins ('' after the last one), then keys and records.
local records, keys, snapshots = KEYS[1], KEYS[2], KEYS[3]
local PAGE = 500
local highest = renew(snapshots)
if not highest then return { 'lost' } end
local low = ARGV[4] == '' and '-' or '(' .. ARGV[4]
local bytes, size = tonumber(ARGV[5]), 0
local found = { 'ok', '' }
local page = redis.call('ZRANGEBYLEX', keys, low, '+', 'LIMIT', 0, PAGE)
local is_large = visit_records(records, page, 1, function(key, record)
  if header(record) <= highest then
    found[#found + 1], found[#found + 2] = key, record
    size = size + #record
  end
  if size > bytes then found[2] = key end
  return size > bytes
end)
if #page == PAGE and not is_large then found[2] = page[PAGE] end
return found
