-- The records of the keys in ARGV after the installation; nil for those that do not exist or have expired.
local records = KEYS[2]
local found = {}
visit_records(records, ARGV, 2, function(_, record)
  if record then
    local _, expires = header(record)
    if not is_live(expires) then record = false end
  end
  found[#found + 1] = record
end)
return found
