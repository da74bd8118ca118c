-- A record is stored as its version, its expiry in milliseconds since 1970 (0 if it never expires) and its value.
local function header(record) return struct.unpack('>I8I8', record) end

local function is_live(expires) return expires == 0 or expires > now end
