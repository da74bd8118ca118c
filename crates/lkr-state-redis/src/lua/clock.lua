-- The server's time in microseconds and in milliseconds since 1970. Both are exact: Lua's numbers have 53 bits.
local now_us
do
  local time = redis.call('TIME')
  now_us = time[1] * 1000000 + time[2]
end
local now = math.floor(now_us / 1000)

-- A number as decimal digits.
local function digits(number) return string.format('%.0f', number) end
