-- Live records of several ranges, all in one state.
-- ARGV: installation, and for each range the bounds in the notation of ZRANGEBYLEX, '+' or '-' for the order, and the
-- largest number of records.
-- Returns for each range the number of its records, then their keys and the records.
local records, keys = KEYS[2], KEYS[3]
local found = {}
for first = 2, #ARGV, 4 do
  local low, high, descending = ARGV[first], ARGV[first + 1], ARGV[first + 2] == '-'
  local limit, count = tonumber(ARGV[first + 3]), 0
  local count_at = #found + 1
  found[count_at] = 0
  while true do
    local wanted = math.min(limit - count, 500)
    local page
    if descending then
      page = redis.call('ZREVRANGEBYLEX', keys, high, low, 'LIMIT', 0, wanted)
    else
      page = redis.call('ZRANGEBYLEX', keys, low, high, 'LIMIT', 0, wanted)
    end
    visit_records(records, page, 1, function(key, record)
      local _, expires = header(record)
      if is_live(expires) then
        found[#found + 1], found[#found + 2] = key, record
        count = count + 1
      end
    end)
    if #page < wanted or count >= limit then break end
    if descending then high = '(' .. page[#page] else low = '(' .. page[#page] end
  end
  found[count_at] = count
end
return found
