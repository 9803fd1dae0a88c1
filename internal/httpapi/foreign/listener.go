package foreign

import (
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

// The headers of a long poll for changed configurations. Source: Nacos
// LongPollingService.
const (
	pollTimeout  = "Long-Pulling-Timeout" // milliseconds
	pollNoHangup = "Long-Pulling-Timeout-No-Hangup"
)

const (
	// maxPoll bounds how long one request is held, whatever it asks for: longer
	// than any default of a client (30 s), short enough for a proxy.
	maxPoll = time.Minute
	// pollMargin is the share of the time that is left for the way back, so that
	// an answer comes before the client gives up: 0.5 s of 30 s, as in Nacos.
	pollMargin = 60
)

// listen answers POST /v1/cs/configs/listener: none of the configurations that
// the client listens to has changed. It says so only when the time of the poll is
// over, since a client asks again at once; or when the server stops.
func listen(x *httpapi.Exchange) {
	if configs, _ := x.Params().Raw("Listening-Configs"); configs == "" {
		x.Caused(400, "invalid probeModify")
		return
	}
	if hold := pollTime(x.Header(pollTimeout), x.Header(pollNoHangup)); hold > 0 {
		timer := time.NewTimer(hold)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-x.Draining():
		}
	}
	x.Empty(200)
}

// pollTime returns how long to hold a poll with these headers. One without a time
// is no long poll, and one that must not hang is that of a client which has just
// begun to listen; both are answered at once.
func pollTime(timeout, noHangup string) time.Duration {
	if strings.EqualFold(noHangup, "true") {
		return 0
	}
	millis, err := strconv.ParseInt(timeout, 10, 64)
	if err != nil || millis <= 0 {
		return 0
	}
	hold := time.Duration(min(millis, maxPoll.Milliseconds())) * time.Millisecond
	return hold - hold/pollMargin
}
