-- Sends requests until a time is over, and awaits the answer to each: none that was sent is left out of the result.
--
-- Each thread of wrk has one connection, so that a request and the answer that follows it belong together. A thread sends the
-- requests of its own file, one in each line, with method, path and body separated by tabs. The first argument is the folder of
-- the files, the second the seconds in which requests are sent. The last answer of a thread stops it; then it prints STOPPED.
-- The caller ends wrk when all threads have stopped, and finds what happened in result.json. wrk's own statistics are not used:
-- they lack the requests that are not answered when wrk ends, and contain additions for what wrk calls coordinated omission.
local ffi = require("ffi")
ffi.cdef([[
    typedef struct { long seconds; long nanoseconds; } comparison_time;
    int clock_gettime(int clock, comparison_time *time);
]])
local MONOTONIC = 1
local clock = ffi.new("comparison_time")

local threads = {}
local requests = {}
local seconds = 0
local began

-- Globals of a thread, which `done` reads.
latencies_us, sent, refused, repeated, hits = {}, 0, 0, 0, 0
first, last = 0, 0

local function now()
    ffi.C.clock_gettime(MONOTONIC, clock)
    return tonumber(clock.seconds) + tonumber(clock.nanoseconds) / 1e9
end

function setup(thread)
    thread:set("number", #threads)
    threads[#threads + 1] = thread
end

function init(arguments)
    folder, seconds = arguments[1], tonumber(arguments[2])
    local file = assert(io.open(folder .. "/requests." .. number .. ".tsv", "r"))
    for line in file:lines() do
        local method, path, body = line:match("^([^\t]*)\t([^\t]*)\t(.*)$")
        local content = body ~= "" and body or nil
        requests[#requests + 1] = wrk.format(method, path, { ["Content-Type"] = "application/json" }, content)
    end
    file:close()
    -- wrk asks the first thread for a request that it does not send.
    if number == 0 then
        sent = -1
    end
end

local function stop()
    wrk.thread:stop()
    io.write("STOPPED\n")
    io.flush()
end

function request()
    sent = sent + 1
    if sent < 1 then
        return requests[1]
    end
    began = now()
    if first == 0 then
        first = began
    elseif began - first > seconds then
        stop() -- after connections that were lost, which have no answers
    end
    if sent > #requests then
        repeated = repeated + 1
    end
    return requests[(sent - 1) % #requests + 1]
end

function response(status, headers)
    last = now()
    if status > 399 then
        refused = refused + 1
    else
        latencies_us[#latencies_us + 1] = math.floor((last - began) * 1e6 + 0.5)
    end
    if (headers["x-cache"] or headers["X-Cache"]) == "hit" then
        hits = hits + 1
    end
    if last - first >= seconds then
        stop()
    end
end

function done()
    local sums = { sent = 0, refused = 0, repeated = 0, hits = 0 }
    local first_of_all, last_of_all = math.huge, 0
    local answered = {}
    for _, thread in ipairs(threads) do
        for name, sum in pairs(sums) do
            sums[name] = sum + thread:get(name)
        end
        if thread:get("first") > 0 then
            first_of_all = math.min(first_of_all, thread:get("first"))
        end
        last_of_all = math.max(last_of_all, thread:get("last"))
        for _, latency in ipairs(thread:get("latencies_us")) do
            answered[#answered + 1] = string.format("%d", latency)
        end
    end
    local file = assert(io.open(threads[1]:get("folder") .. "/result.json", "w"))
    file:write(string.format(
        '{"sent": %d, "refused": %d, "repeated": %d, "hits": %d, "seconds": %.6f, "latencies_us": [%s]}\n',
        sums.sent, sums.refused, sums.repeated, sums.hits,
        math.max(0, last_of_all - first_of_all), table.concat(answered, ", ")
    ))
    file:close()
end
