-- A step that a client may send twice. Its key is the last one and contains its id; ARGV[2] is the time in milliseconds
-- until which it may be applied. The answer is kept for longer than that, so a step is applied once, however often and
-- however late its copies arrive.
local KEPT_AFTER_DEADLINE = 120000
local step, deadline = KEYS[#KEYS], tonumber(ARGV[2])

-- The answer of an earlier copy of this step, or the refusal of a late one; nil if the step is new.
local function answered()
  local answer = redis.call('GET', step)
  if answer then
    -- A write, so that WAIT on this connection also waits for the write of the earlier copy.
    redis.call('PEXPIRE', step, digits(math.max(deadline - now, 0) + KEPT_AFTER_DEADLINE))
    return cmsgpack.unpack(answer)
  end
  if now > deadline then return { 'late', digits(now) } end
end

-- Keeps the answer for copies of this step.
local function answer_with(answer)
  local kept = digits(deadline - now + KEPT_AFTER_DEADLINE)
  redis.call('SET', step, cmsgpack.pack(answer), 'PX', kept)
  return answer
end

-- The next number of a counter. It is larger than every earlier one, also if the server lost the last ones: ARGV[3] is the
-- largest number that the caller has seen, and the clock goes on while a server is down.
local function next_number(counter)
  local last = tonumber(redis.call('HGET', meta, counter) or 0)
  local number = math.max(last + 1, ARGV[3] + 1, now_us)
  redis.call('HSET', meta, counter, digits(number))
  return number
end
