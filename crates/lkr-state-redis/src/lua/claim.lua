-- ARGV: installation, deadline, largest number seen, 'any', 'short', 'spare' or 'long', lease in microseconds.
-- Returns the task and its token, or the time in microseconds until a task becomes claimable ('-' for never).
promote()
local lanes = ({ any = { SHORT, LONG }, short = { SHORT }, spare = { SHORT }, long = { LONG } })[ARGV[4]]
for _, lane in ipairs(lanes) do
  local task
  if ARGV[4] == 'spare' then
    local first = redis.call('ZRANGE', idle, 0, 0)[1]
    task = first and first_with(by_flow, flow_prefix(first:sub(9))):sub(-16)
  else
    local first = redis.call('ZRANGE', ready[lane], 0, 0)[1]
    task = first and first:sub(9)
  end
  if task then
    local entry = load_entry(task)
    redis.call('HSET', meta, CLOCKS[lane], digits(math.max(clock(lane), entry.tag)))
    local token = next_number('number')
    change(entry, { token = token, claimable = time_after(ARGV[5]), tag = false })
    refresh(entry.flow)
    return answer_with({ 'claim', task, digits(token) })
  end
end
local next_due = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
return { 'none', next_due and digits(math.max(next_due - now_us, 0)) or '-' }
