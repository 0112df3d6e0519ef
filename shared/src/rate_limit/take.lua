-- Takes one out of a bucket, by the generic cell rate algorithm (GCRA, as in ATM's traffic contracts): what is kept is
-- the time at which the bucket would be full again.
-- KEYS[1] the bucket; ARGV: the time in which one comes back, in µs; how many the bucket holds.
-- Answers 0, or the µs until there is one. The time is Redis's own: the hosts' clocks may differ.
local interval, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now) + interval
local wait = full - interval * most - now
if wait > 0 then return wait end
-- As text without an exponent, which would lose digits.
redis.call('SET', KEYS[1], string.format('%.0f', full))
redis.call('PEXPIRE', KEYS[1], math.ceil((full - now) / 1000))
return 0
