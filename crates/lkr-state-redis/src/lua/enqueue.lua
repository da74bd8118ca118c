-- ARGV: installation, deadline, largest number seen, task, flow, charge, lane (0 or 1), delay in microseconds.
local task = ARGV[4]
if redis.call('HEXISTS', tasks, task) == 0 then
  local entry = {
    task = task, flow = ARGV[5], charge = tonumber(ARGV[6]), lane = tonumber(ARGV[7]),
    claimable = time_after(ARGV[8]), sequence = next_number('number'), token = 0,
  }
  add_to_indexes(entry)
  save(entry)
  redis.call('ZADD', ids, 0, task)
  wake_claims()
end
promote()
return answer_with({ 'ok' })
