-- The entries of the queue and their indexes; the crate's README says what each key contains.
local tasks, ids, due = KEYS[2], KEYS[3], KEYS[4]
local ready = { [0] = KEYS[5], [1] = KEYS[6] }
local by_flow, idle, heads, busy = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local finish_tags = { [0] = KEYS[11], [1] = KEYS[12] }
local wake = KEYS[13]
local CLOCKS = { [0] = 'clock:short', [1] = 'clock:long' }
local SHORT, LONG = 0, 1
-- Start tags are smaller than this; finish tags end at twice this.
local END_OF_TAGS = 2 ^ 49
-- The number of flows beyond which those are forgotten that have nothing queued.
local MIN_FLOWS = 64
-- The number of tasks that become claimable in one step, so that other clients are not kept waiting.
local MOST_PROMOTED = 1000

-- Numbers in this form sort like their values.
local function sortable(number) return struct.pack('>I8', number) end

local function flow_prefix(flow) return struct.pack('>I4', #flow) .. flow end

-- The smallest member of a sorted set whose members begin with the prefix. No member has the byte 255 after it.
local function first_with(set, prefix)
  return redis.call('ZRANGEBYLEX', set, '[' .. prefix, '(' .. prefix .. '\255', 'LIMIT', 0, 1)[1]
end

-- Its fields: when it becomes claimable in microseconds (0 for never), its start tag (nil unless it is claimable), its
-- sequence number, its token (0 if it was never claimed), its charge, its lane, its flow.
local function load_entry(task)
  local packed = redis.call('HGET', tasks, task)
  if not packed then return end
  local claimable, tag, sequence, token, charge, lane, at = struct.unpack('>I8I8I8I8I8B', packed)
  return {
    task = task, claimable = claimable, tag = tag > 0 and tag - 1 or nil, sequence = sequence,
    token = token, charge = charge, lane = lane, flow = packed:sub(at),
  }
end

local function place_of(entry) return sortable(entry.sequence) .. entry.task end

local function place_in_flow(entry)
  return flow_prefix(entry.flow) .. sortable(entry.tag) .. place_of(entry)
end

-- Whether a worker holds the task under a lease that has not ended.
local function is_held(entry) return not entry.tag and entry.token > 0 end

local function add_to_indexes(entry)
  if entry.tag then
    redis.call('ZADD', ready[entry.lane], digits(entry.tag), place_of(entry))
    if entry.lane == SHORT then redis.call('ZADD', by_flow, 0, place_in_flow(entry)) end
  elseif entry.claimable > 0 then
    redis.call('ZADD', due, digits(entry.claimable), place_of(entry))
  end
  if is_held(entry) then redis.call('HINCRBY', busy, entry.flow, 1) end
end

local function remove_from_indexes(entry)
  if entry.tag then
    redis.call('ZREM', ready[entry.lane], place_of(entry))
    if entry.lane == SHORT then redis.call('ZREM', by_flow, place_in_flow(entry)) end
  elseif entry.claimable > 0 then
    redis.call('ZREM', due, place_of(entry))
  end
  if is_held(entry) and redis.call('HINCRBY', busy, entry.flow, -1) <= 0 then
    redis.call('HDEL', busy, entry.flow)
  end
end

local function save(entry)
  local tag = entry.tag and entry.tag + 1 or 0
  local packed = struct.pack('>I8I8I8I8I8B', entry.claimable, tag, entry.sequence, entry.token,
    entry.charge, entry.lane)
  redis.call('HSET', tasks, entry.task, packed .. entry.flow)
end

-- Updates the flow among those that have a short task to claim and no task claimed, by the tag of its first task.
local function refresh(flow)
  local head
  if redis.call('HEXISTS', busy, flow) == 0 then
    local prefix = flow_prefix(flow)
    local first = first_with(by_flow, prefix)
    head = first and first:sub(#prefix + 1, #prefix + 16)
  end
  local old = redis.call('HGET', heads, flow) or nil
  if old == head then return end
  if old then redis.call('ZREM', idle, old:sub(9, 16) .. flow) end
  if head then
    redis.call('HSET', heads, flow, head)
    redis.call('ZADD', idle, digits(struct.unpack('>I8', head)), head:sub(9, 16) .. flow)
  else
    redis.call('HDEL', heads, flow)
  end
end

-- Changes an entry and its indexes.
local function change(entry, fields)
  remove_from_indexes(entry)
  for name, value in pairs(fields) do entry[name] = value end
  if fields.tag == false then entry.tag = nil end
  add_to_indexes(entry)
  save(entry)
end

local function clock(lane) return tonumber(redis.call('HGET', meta, CLOCKS[lane]) or 0) end

-- The start tag of a task that becomes claimable now: see fair.rs of lkr-state.
local function start_tag(entry)
  local served, finished = clock(entry.lane), finish_tags[entry.lane]
  if redis.call('ZCARD', finished) > MIN_FLOWS then
    redis.call('ZREMRANGEBYSCORE', finished, '-inf', digits(served))
  end
  local start = math.max(served, tonumber(redis.call('ZSCORE', finished, entry.flow) or 0))
  local finish = math.min(start + entry.charge, 2 * END_OF_TAGS)
  redis.call('ZADD', finished, digits(finish), entry.flow)
  return math.min(start, END_OF_TAGS - 1)
end

-- Gives every task that has become claimable its place among the flows.
local function promote()
  local places = redis.call('ZRANGEBYSCORE', due, '-inf', digits(now_us), 'LIMIT', 0, MOST_PROMOTED)
  local flows = {}
  for _, place in ipairs(places) do
    local entry = load_entry(place:sub(9))
    change(entry, { tag = start_tag(entry) })
    flows[entry.flow] = true
  end
  for flow in pairs(flows) do refresh(flow) end
end

-- The time after a duration in microseconds; 0, which means never, after '-'.
local function time_after(duration) return duration == '-' and 0 or now_us + duration end

-- The entry of a valid claim.
local function claimed_entry(task, token)
  local entry = load_entry(task)
  if entry and entry.token > 0 and entry.token == tonumber(token) then return entry end
end

local function remove_entry(entry)
  remove_from_indexes(entry)
  redis.call('HDEL', tasks, entry.task)
  redis.call('ZREM', ids, entry.task)
  refresh(entry.flow)
end

-- Wakes the claims that wait in all processes.
local function wake_claims() redis.call('XADD', wake, 'MAXLEN', '~', 64, '*', 'w', '') end

local answer = answered()
if answer then return answer end
