-- Takes some out of a bucket, by the generic cell rate algorithm (GCRA, as in ATM's traffic contracts). The key keeps
-- the time at which the bucket will be full.
-- KEYS[1]: the bucket. ARGV: the time in which the bucket gets one back, in µs; the bucket's size; how many to take.
-- Returns 0, or the µs until the bucket has them. The time is Redis's own, because the hosts' clocks may differ.
local interval, most, many = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now) + interval * many
local wait = full - interval * most - now
if wait > 0 then return wait end
-- A text without an exponent, which would lose digits.
redis.call('SET', KEYS[1], string.format('%.0f', full))
redis.call('PEXPIRE', KEYS[1], math.ceil((full - now) / 1000))
return 0
