package health

import (
	"time"

	"github.com/rollcall-registry/rollcall/internal/health/probe"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// The first probe of an instance comes firstProbe after it was found, plus a
// random part of the switch tcpHealthParams.max.
// Source: Nacos HealthCheckTask.initCheckRT.
const firstProbe = 2 * time.Second

// longestPeriod keeps a switch that was set to nonsense from stopping probes.
const longestPeriod = time.Hour

// params returns the switch that paces a kind of probe.
func params(s *registry.Switches, kind registry.CheckType) registry.ProbeParams {
	switch kind {
	case registry.CheckHTTP:
		return s.HTTPHealthParams
	case registry.CheckMySQL:
		return s.MySQLHealthParams
	default:
		return s.TCPHealthParams
	}
}

// cost is the response time that a probe counts as: what an instance that does
// not answer would deserve, since it sets when it is probed next.
// Source: Nacos' health check processors.
func cost(r probe.Outcome, took, smoothed time.Duration, p registry.ProbeParams) time.Duration {
	switch r {
	case probe.Up:
		return took
	case probe.Down:
		return 2 * smoothed
	default:
		return millis(p.Max)
	}
}

// smooth is the period that follows a probe of the given cost.
// Source: Nacos HealthCheckCommon.reEvaluateCheckRT.
func smooth(smoothed, cost time.Duration, p registry.ProbeParams) time.Duration {
	next := time.Duration(float64(p.Factor)*float64(smoothed) + float64(1-p.Factor)*float64(cost))
	return min(max(min(next, millis(p.Max)), millis(p.Min), 0), longestPeriod)
}

// millis converts a switch, within what a duration can hold.
func millis(n int) time.Duration {
	return time.Duration(min(max(n, 0), int(longestPeriod/time.Millisecond))) * time.Millisecond
}

// spread moves a period by up to a fifth either way, so that targets do not stay
// in step, but never below least. random is within 0 and 1.
func spread(period, least time.Duration, random float64) time.Duration {
	d := time.Duration(float64(period) * (0.8 + 0.4*random))
	if d < least {
		d = time.Duration(float64(least) * (1 + 0.2*random))
	}
	return d
}
