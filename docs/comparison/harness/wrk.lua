-- Sends the requests of a file in order: one in each line, with method, path and body separated by tabs.
local requests = {}
local at = 0

function init(arguments)
    local file = assert(io.open(arguments[1], "r"))
    for line in file:lines() do
        local method, path, body = line:match("^([^\t]*)\t([^\t]*)\t(.*)$")
        local content = body ~= "" and body or nil
        requests[#requests + 1] = wrk.format(method, path, { ["Content-Type"] = "application/json" }, content)
    end
    file:close()
end

function request()
    at = at % #requests + 1
    return requests[at]
end

function done(summary, latency)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    io.write(string.format(
        'RESULT {"requests": %d, "failed": %d, "seconds": %.3f, "p50_ms": %.3f, "p99_ms": %.3f}\n',
        summary.requests, failed, summary.duration / 1e6,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3
    ))
end
