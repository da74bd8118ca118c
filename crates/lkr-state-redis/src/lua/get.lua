-- The records of the keys in ARGV; nil for those that do not exist or have expired.
local records = KEYS[1]
local found = {}
for n, key in ipairs(ARGV) do
  local record = redis.call('HGET', records, key)
  if record then
    local _, expires = header(record)
    if not is_live(expires) then record = false end
  end
  found[n] = record
end
return found
