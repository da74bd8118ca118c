-- A record is stored as its version, its expiry in milliseconds since 1970 (0 if it never expires) and its value.
local function header(record) return struct.unpack('>I8I8', record) end

local function is_live(expires) return expires == 0 or expires > now end

-- Calls `visit` with each of the keys from the first one on and its record, until it returns true. Reads so few records at
-- once that large ones need little memory.
local function visit_records(records, keys, first, visit)
  local BATCH = 20
  for from = first, #keys, BATCH do
    local to = math.min(from + BATCH - 1, #keys)
    local batch = redis.call('HMGET', records, unpack(keys, from, to))
    for n = 1, #batch do
      if visit(keys[from + n - 1], batch[n]) then return true end
    end
  end
end
