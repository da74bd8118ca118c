-- ARGV: deadline, largest number seen, task, flow, charge, lane (0 or 1), delay in microseconds.
local task = ARGV[3]
if redis.call('HEXISTS', tasks, task) == 0 then
  local entry = {
    task = task, flow = ARGV[4], charge = tonumber(ARGV[5]), lane = tonumber(ARGV[6]),
    claimable = time_after(ARGV[7]), sequence = next_number(meta, 'number'), token = 0,
  }
  add_to_indexes(entry)
  save(entry)
  redis.call('ZADD', ids, 0, task)
  wake_claims()
end
promote()
return answer_with({ 'ok' })
