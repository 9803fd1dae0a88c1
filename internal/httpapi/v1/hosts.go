package v1

import (
	"crypto/md5"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// form is everything that shapes the hosts of a list: what a request asks for,
// without what the answer merely echoes.
type form struct {
	// grouped: the client reads group@@service in hosts[].serviceName.
	grouped     bool
	healthyOnly bool
	// clusters are those of the view that are asked for, in the order of the
	// request; nil means all.
	clusters []string
	// nowhere: clusters are asked for, and the view has none of them.
	nowhere bool
}

// maxRepeats is how often one cluster may count in one request: 1.4.8 lists the
// hosts of a cluster as often as it is named, which lets a short request ask for
// gigabytes.
const maxRepeats = 2

// inClusters narrows f to the clusters that a request names. They are separated
// by commas and may have blanks around them; a text without any name means all,
// unknown ones are left out, and one that is named twice counts twice.
func (f *form) inClusters(view *registry.View, text string) {
	named := false
	for name := range strings.SplitSeq(text, ",") {
		name = strings.Trim(name, blanks)
		if name == "" {
			continue
		}
		named = true
		if c := view.Cluster(name); c != nil && count(f.clusters, c.Name) < maxRepeats {
			f.clusters = append(f.clusters, c.Name)
		}
	}
	f.nowhere = named && len(f.clusters) == 0
	if len(f.clusters) == 1 && len(view.Clusters) == 1 {
		f.clusters = nil // all there is: one form for both ways to ask
	}
}

func count(names []string, name string) (n int) {
	for _, have := range names {
		if have == name {
			n++
		}
	}
	return n
}

// key names f among the wire forms of a view.
func (f *form) key() string {
	switch {
	case f.nowhere:
		return "v1 list of nobody"
	case f.clusters != nil:
		return f.kind() + " in " + strings.Join(f.clusters, ",")
	default:
		return f.kind()
	}
}

func (f *form) kind() string {
	switch {
	case f.grouped && f.healthyOnly:
		return "v1 list grouped healthy"
	case f.grouped:
		return "v1 list grouped"
	case f.healthyOnly:
		return "v1 list healthy"
	default:
		return "v1 list"
	}
}

// encodedHosts is the part of a list that a view and a form decide.
type encodedHosts struct {
	checksum []byte // 32 hexadecimal digits
	// array is a JSON array, nil when not even a filtered-out instance is there:
	// 1.x answers these in different shapes.
	array []byte
}

// hostsOf returns the encoded instances of view. The bytes are shared.
func (a *API) hostsOf(view *registry.View, f form) encodedHosts {
	b := a.encoder.Encode(view, f.key(), func(b []byte) []byte { return f.encode(b, view) })
	h := encodedHosts{checksum: b[:checksumLen]}
	if len(b) > checksumLen {
		h.array = b[checksumLen:]
	}
	return h
}

// encode appends the checksum and then the hosts, if there are candidates.
func (f *form) encode(b []byte, view *registry.View) []byte {
	if f.nowhere {
		return appendChecksum(b, view)
	}
	sel := registry.Select(view, registry.Query{
		Clusters: f.clusters, HealthyOnly: f.healthyOnly, Policy: registry.PolicyV1,
	})
	if sel.Candidates == 0 {
		return appendChecksum(b, view)
	}
	service := plainName(view.Key)
	if f.grouped {
		service = view.Grouped
	}
	b = slices.Grow(b, checksumLen+2+hostsLen(sel.Instances, service, view.Grouped))
	b = appendChecksum(b, view)
	b = append(b, '[')
	for n, i := range sel.Instances {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendHost(b, i, sel.Healthy(i), service, view.Grouped)
	}
	return append(b, ']')
}

// hostsLen is about the length of the encoded instances.
func hostsLen(list []*registry.Instance, service, grouped string) int {
	const fixed = 230 // names of the fields, flags, numbers
	n := len(list) * (fixed + len(service) + len(grouped))
	for _, i := range list {
		n += 2*len(i.IP) + 2*len(i.Cluster) + len(i.Metadata)
	}
	return n
}

// appendHost appends one instance. healthy is the health to show. The order of
// the fields is that of 1.4.8, which some hand-made clients count on.
func appendHost(b []byte, i *registry.Instance, healthy bool, service, grouped string) []byte {
	b = append(b, `{"ip":`...)
	b = registry.AppendJSONString(b, i.IP)
	b = append(b, `,"port":`...)
	b = strconv.AppendInt(b, int64(i.Port), 10)
	b = append(b, `,"valid":`...)
	b = strconv.AppendBool(b, healthy)
	b = append(b, `,"healthy":`...)
	b = strconv.AppendBool(b, healthy)
	b = append(b, `,"marked":`...)
	b = strconv.AppendBool(b, i.Marked)
	b = append(b, `,"instanceId":`...)
	b = appendInstanceID(b, i, grouped)
	b = append(b, `,"metadata":`...)
	b = i.Metadata.AppendJSON(b)
	b = append(b, `,"enabled":`...)
	b = strconv.AppendBool(b, i.Enabled)
	b = append(b, `,"weight":`...)
	b = appendDouble(b, i.Weight)
	b = append(b, `,"clusterName":`...)
	b = registry.AppendJSONString(b, i.Cluster)
	b = append(b, `,"serviceName":`...)
	b = registry.AppendJSONString(b, service)
	b = append(b, `,"ephemeral":`...)
	b = strconv.AppendBool(b, i.Ephemeral)
	return append(b, '}')
}

const checksumLen = 2 * md5.Size

// appendChecksum appends the checksum of a service: as in 1.4.8 an MD5 in lower
// case, over the settings and each instance's address, weight, health and
// cluster, but not its metadata. It is the same for every filter and on every
// server; clients only compare it.
func appendChecksum(b []byte, view *registry.View) []byte {
	h := md5.New()
	line := make([]byte, 0, 256)
	line = append(line, view.Grouped...)
	line = appendDouble(append(line, ' '), float64(view.Info.ProtectThreshold))
	line = append(append(line, ' '), view.Info.Selector.Type...)
	line = append(append(line, ' '), view.Info.Selector.Expression...)
	line = append(append(line, ' '), view.Info.Metadata...)
	h.Write(line)
	for _, c := range view.Clusters {
		line = append(append(line[:0], '\n'), c.Name...)
		line = append(append(line, ' '), c.Checker.Type...)
		line = strconv.AppendInt(append(line, ' '), int64(c.CheckPort), 10)
		line = append(append(line, ' '), c.Metadata...)
		h.Write(line)
	}
	for _, i := range view.Instances {
		line = append(append(line[:0], '\n'), i.IP...)
		line = strconv.AppendInt(append(line, ':'), int64(i.Port), 10)
		line = appendDouble(append(line, '_'), i.Weight)
		line = strconv.AppendBool(append(line, '_'), i.Healthy)
		line = append(append(line, '_'), i.Cluster...)
		h.Write(line)
	}
	return hex.AppendEncode(b, h.Sum(line[:0]))
}
