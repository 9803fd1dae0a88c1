package legacy

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// dom answers the settings of a service and of its clusters.
func (a *API) dom(x *httpapi.Exchange) {
	key, err := domOf(x.Params(), "dom")
	if err != nil {
		a.fail(x, err)
		return
	}
	view, err := a.existing(key, func(string) error { return missing("Dom doesn't exist") })
	if err != nil {
		a.fail(x, err)
		return
	}
	x.Scratch = a.appendDom(x.Scratch[:0], view)
	x.JSON(200, x.Scratch)
}

// appendDom appends what dom shows of a service, its fields in the order in which
// 0.9 happens to send them.
func (a *API) appendDom(b []byte, view *registry.View) []byte {
	legacy := legacyOf(view.Info)
	m := modeOf(view)
	clusters, average := a.appendClusters(nil, view)
	b = append(b, `{"lastModifiedTime":`...)
	b = registry.AppendJSONString(b, time.UnixMilli(view.Revision).Format(time.DateTime))
	b = append(b, `,"resetWeight":`...)
	b = strconv.AppendBool(b, legacy.ResetWeight)
	b = append(b, `,"owners":`...)
	b = appendStrings(b, legacy.Owners)
	b = append(b, `,"avgCkRTMillis":`...)
	b = strconv.AppendInt(b, average, 10)
	b = append(b, `,"protectThreshold":`...)
	b = appendNumber(b, float64(view.Info.ProtectThreshold), 32)
	b = append(b, `,"token":`...)
	b = registry.AppendJSONString(b, tokenOf(view.Key, &legacy))
	b = append(b, `,"invalidIPCount":`...)
	b = strconv.AppendInt(b, int64(unhealthy(view)), 10)
	b = append(b, `,"useSpecifiedURL":`...)
	b = strconv.AppendBool(b, legacy.UseSpecifiedURL)
	b = append(b, `,"enableClientBeat":`...)
	b = strconv.AppendBool(b, m.beats)
	b = append(b, `,"checkServer":"unknown","enable":`...)
	b = strconv.AppendBool(b, !view.Info.Disabled)
	b = append(b, `,"enableHealthCheck":`...)
	b = strconv.AppendBool(b, m.probes)
	b = append(b, `,"name":`...)
	b = registry.AppendJSONString(b, shown(view.Key))
	b = append(b, `,"checksum":"`...)
	b = appendChecksum(b, view)
	b = append(b, `","ipCount":`...)
	b = strconv.AppendInt(b, int64(len(view.Instances)), 10)
	b = append(b, `,"clusters":`...)
	b = append(b, clusters...)
	return append(b, '}')
}

// legacyOf returns a copy of what only this API knows of a service, with the
// defaults of 0.9.
func legacyOf(info *registry.ServiceInfo) registry.LegacyInfo {
	var legacy registry.LegacyInfo
	if info.Legacy != nil {
		legacy = *info.Legacy
	}
	if legacy.Owners == nil {
		legacy.Owners = []string{""}
	}
	return legacy
}

// tokenOf returns the token of a service: as in 0.9 the MD5 of its name, when
// nobody has chosen one. It protects nothing.
func tokenOf(key registry.ServiceKey, legacy *registry.LegacyInfo) string {
	if legacy.Token != "" {
		return legacy.Token
	}
	sum := md5.Sum([]byte(shown(key)))
	return hex.EncodeToString(sum[:])
}

func unhealthy(view *registry.View) int {
	n := 0
	for _, i := range view.Instances {
		if !i.Healthy {
			n++
		}
	}
	return n
}

// appendClusters appends the clusters of a service, and returns the mean of the
// times that probes take in those that have instances.
func (a *API) appendClusters(b []byte, view *registry.View) (_ []byte, average int64) {
	used := make(map[string]bool, len(view.Clusters))
	for _, i := range view.Instances {
		used[i.Cluster] = true
	}
	var total, count int64
	b = append(b, '[')
	for n, c := range view.Clusters {
		if n > 0 {
			b = append(b, ',')
		}
		_, _, took := a.probeTime(view.Key, c.Name)
		if used[c.Name] {
			total, count = total+took, count+1
		}
		b = appendCluster(b, c, took)
	}
	return append(b, ']'), total / max(count, 1)
}

func appendCluster(b []byte, c *registry.Cluster, took int64) []byte {
	b = append(b, `{"healthChecker":`...)
	b = appendChecker(b, c.Checker)
	b = append(b, `,"defIPPort":`...)
	b = strconv.AppendInt(b, int64(c.DefaultPort), 10)
	b = append(b, `,"defCkport":`...)
	b = strconv.AppendInt(b, int64(c.CheckPort), 10)
	b = append(b, `,"metadatas":`...)
	b = c.Metadata.AppendJSON(b)
	b = append(b, `,"name":`...)
	b = registry.AppendJSONString(b, c.Name)
	b = append(b, `,"useIPPort4Check":`...)
	b = strconv.AppendBool(b, c.UseInstancePort)
	b = append(b, `,"ckRTMillis":`...)
	b = strconv.AppendInt(b, took, 10)
	b = append(b, `,"sitegroup":`...)
	b = registry.AppendJSONString(b, c.SiteGroup)
	return append(b, '}')
}

// appendChecker appends a cluster's probe, the one that it had when it is off. 0.9
// also shows the headers of an HTTP probe as an object.
func appendChecker(b []byte, c registry.HealthCheck) []byte {
	c.Type = formerType(c)
	b = values.AppendChecker(b, c)
	if c.Type != registry.CheckHTTP {
		return b
	}
	b = append(b[:len(b)-1], `,"customHeaders":`...)
	return append(customHeaders(c.Headers).AppendJSON(b), '}')
}

// customHeaders reads "k:v" pairs joined by "|".
func customHeaders(text string) registry.Metadata {
	headers := map[string]string{}
	for pair := range strings.SplitSeq(text, "|") {
		if k, v, ok := strings.Cut(pair, ":"); ok {
			headers[k] = v
		}
	}
	return registry.NewMetadata(headers)
}

// appendChecksum appends 32 hexadecimal digits that change whenever the service
// does. Clients and scripts only compare them.
func appendChecksum(b []byte, view *registry.View) []byte {
	line := make([]byte, 0, 256)
	line = append(append(line, view.Key.Namespace...), "##"...)
	line = binary.BigEndian.AppendUint64(append(line, view.Grouped...), uint64(view.Revision))
	sum := md5.Sum(line)
	return hex.AppendEncode(b, sum[:])
}

// reCalculateCheckSum4Dom answers the checksum of a service.
func (a *API) reCalculateCheckSum4Dom(x *httpapi.Exchange) {
	view, err := a.existingDom(x.Params(), "dom not found")
	if err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"checksum":"`...)
	x.Scratch = append(appendChecksum(b, view), `"}`...)
	x.JSON(200, x.Scratch)
}

// rt4Dom answers how long the probes of each cluster take, in milliseconds.
func (a *API) rt4Dom(x *httpapi.Exchange) {
	view, err := a.existingDom(x.Params(), "request dom doesn't exist")
	if err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"clusters":[`...)
	for n, c := range view.Clusters {
		if n > 0 {
			b = append(b, ',')
		}
		best, worst, normalized := a.probeTime(view.Key, c.Name)
		b = append(b, `{"checkRTNormalized":`...)
		b = strconv.AppendInt(b, normalized, 10)
		b = append(b, `,"name":`...)
		b = registry.AppendJSONString(b, c.Name)
		b = append(b, `,"checkRTBest":`...)
		b = strconv.AppendInt(b, best, 10)
		b = append(b, `,"checkRTWorst":`...)
		b = strconv.AppendInt(b, worst, 10)
		b = append(b, '}')
	}
	x.Scratch = append(b, "]}"...)
	x.JSON(200, x.Scratch)
}
