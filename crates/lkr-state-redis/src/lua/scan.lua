-- Live records between two keys.
-- ARGV: installation, the bounds in the notation of ZRANGEBYLEX, '+' or '-' for the order, the largest number of records, and the number
-- of bytes after which no more are read.
-- Returns the key after which the caller goes on ('' if there is nothing more), then keys and records.
local records, keys = KEYS[2], KEYS[3]
local low, high, descending = ARGV[2], ARGV[3], ARGV[4] == '-'
local limit, bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
-- The number of expired records after which the server turns to other clients.
local MOST_LOOKED_AT = 10000
local found, looked_at, size = { '' }, 0, 0
while true do
  local wanted = math.min(limit - (#found - 1) / 2, 500)
  local page
  if descending then
    page = redis.call('ZREVRANGEBYLEX', keys, high, low, 'LIMIT', 0, wanted)
  else
    page = redis.call('ZRANGEBYLEX', keys, low, high, 'LIMIT', 0, wanted)
  end
  local is_large = visit_records(records, page, 1, function(key, record)
    local _, expires = header(record)
    if is_live(expires) then
      found[#found + 1], found[#found + 2] = key, record
      size = size + #record
    end
    if size > bytes then found[1] = key end
    return size > bytes
  end)
  if is_large then return found end
  looked_at = looked_at + #page
  if #page < wanted or (#found - 1) / 2 >= limit then return found end
  if looked_at >= MOST_LOOKED_AT then
    found[1] = page[#page]
    return found
  end
  if descending then high = '(' .. page[#page] else low = '(' .. page[#page] end
end
