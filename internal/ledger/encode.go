package ledger

import (
	"math"
	"net/netip"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// appendRecord appends one record as a line. It does not allocate when b has
// room, and keeps nothing of e.
func appendRecord(b []byte, seq uint64, e *registry.Event, count uint64) []byte {
	start := len(b)
	b = append(b, `{"`+fieldSeq+`":`...)
	b = strconv.AppendUint(b, seq, 10)
	b = append(b, `,"`+fieldTime+`":`...)
	b = strconv.AppendInt(b, e.At.Wall, 10)
	b = appendText(b, `,"`+fieldKind+`":`, string(e.Kind))
	b = appendNonEmpty(b, `,"`+fieldNamespace+`":`, e.Service.Namespace)
	b = appendNonEmpty(b, `,"`+fieldGroup+`":`, e.Service.Group)
	b = appendNonEmpty(b, `,"`+fieldService+`":`, e.Service.Name)
	if e.Instance != nil {
		b = appendInstance(b, e)
	}
	b = appendNonZero(b, `,"`+fieldRevision+`":`, e.Revision)
	if e.Subscriber != nil {
		b = appendSubscriber(b, e.Subscriber)
	}
	b = appendNonZero(b, `,"`+fieldTook+`":`, e.Took.Microseconds())
	b = appendCause(b, &e.Cause)
	b = appendNonEmpty(b, `,"`+fieldDetail+`":`, e.Detail)
	if count > 0 {
		b = append(b, `,"`+fieldCount+`":`...)
		b = strconv.AppendUint(b, count, 10)
	}
	return appendSeal(b, start)
}

func appendInstance(b []byte, e *registry.Event) []byte {
	i := e.Instance
	b = appendNonEmpty(b, `,"`+fieldCluster+`":`, i.Cluster)
	b = appendNonEmpty(b, `,"`+fieldIP+`":`, i.IP)
	b = appendNonZero(b, `,"`+fieldPort+`":`, int64(i.Port))
	b = append(b, `,"`+fieldEphemeral+`":`...)
	if i.Ephemeral {
		b = append(b, '1')
	} else {
		b = append(b, '0')
	}
	b = appendFlag(b, `,"`+fieldHealthy+`":1`, i.Healthy)
	if !keyOnly(e.Kind) {
		b = appendFlag(b, `,"`+fieldMarked+`":1`, i.Marked)
		b = appendFlag(b, `,"`+fieldHideID+`":1`, i.HideID)
		b = appendNonZero(b, `,"`+fieldSerial+`":`, int64(i.Serial))
		b = appendNonEmpty(b, `,"`+fieldOwnID+`":`, i.OwnID())
		b = appendNonZero(b, `,"`+fieldUncluster+`":`, int64(i.Unclustered))
		b = appendOverridable(append(b, ','), i)
		b = appendBase(b, i, e.Base)
	}
	b = appendText(b, `,"`+fieldOwner+`":`, e.Owner.Kind.String())
	return appendNonEmpty(b, `,"`+fieldClient+`":`, string(e.Owner.Client))
}

// appendOverridable appends the members that an operator's override can change.
func appendOverridable(b []byte, i *registry.Instance) []byte {
	b = appendWeight(b, i.Weight)
	b = appendFlag(b, `,"`+fieldEnabled+`":1`, i.Enabled)
	b = appendNonEmpty(b, `,"`+fieldApp+`":`, i.App)
	if i.Metadata != "" {
		b = append(b, `,"`+fieldMetadata+`":`...)
		b = i.Metadata.AppendJSON(b)
	}
	return b
}

// appendBase appends the registration below the override, which hardly ever
// differs from i.
func appendBase(b []byte, i, base *registry.Instance) []byte {
	switch {
	case base == nil:
		return b
	case base == i || base.Weight == i.Weight && base.Enabled == i.Enabled && base.App == i.App && base.Metadata == i.Metadata:
		return append(b, `,"`+fieldBase+`":1`...)
	default:
		b = append(b, `,"`+fieldBase+`":{`...)
		return append(appendOverridable(b, base), '}')
	}
}

func appendSubscriber(b []byte, s *registry.Subscriber) []byte {
	b = append(b, `,"`+fieldSubscriber+`":`...)
	switch {
	case !s.Addr.IsValid():
		b = append(b, `""`...)
	case s.Addr.Addr().Zone() != "": // free text
		b = registry.AppendJSONString(b, s.Addr.String())
	default:
		b = append(b, '"')
		b = s.Addr.AppendTo(b)
		b = append(b, '"')
	}
	b = appendNonEmpty(b, `,"`+fieldSubscriberProtocol+`":`, string(s.Protocol))
	b = appendNonEmpty(b, `,"`+fieldSubscriberClient+`":`, string(s.Client))
	b = appendNonEmpty(b, `,"`+fieldSubscriberAgent+`":`, s.Agent)
	return appendNonEmpty(b, `,"`+fieldSubscriberClusters+`":`, s.Clusters)
}

func appendCause(b []byte, c *registry.Cause) []byte {
	b = appendNonEmpty(b, `,"`+fieldCause+`":`, string(c.Kind))
	b = appendNonEmpty(b, `,"`+fieldAPI+`":`, c.API)
	b = appendNonEmpty(b, `,"`+fieldOp+`":`, c.Op)
	if c.From.IsValid() {
		b = append(b, `,"`+fieldFrom+`":`...)
		b = appendAddr(b, c.From)
	}
	b = appendNonEmpty(b, `,"`+fieldActor+`":`, c.Actor)
	return appendNonEmpty(b, `,"`+fieldCauseDetail+`":`, c.Detail)
}

// appendAddr spares the common address a string. A zone is free text.
func appendAddr(b []byte, a netip.Addr) []byte {
	if a.Zone() != "" {
		return registry.AppendJSONString(b, a.String())
	}
	b = append(b, '"')
	b = a.AppendTo(b)
	return append(b, '"')
}

// appendWeight writes whole numbers, as nearly all weights are, the quick way.
// JSON has no words for NaN and the infinities; the core refuses them.
func appendWeight(b []byte, w float64) []byte {
	b = append(b, `"`+fieldWeight+`":`...)
	switch {
	case w > 0 && w < 1<<53 && w == math.Trunc(w):
		return strconv.AppendUint(b, uint64(w), 10)
	case math.IsNaN(w) || math.IsInf(w, 0):
		return append(b, '0')
	default:
		return strconv.AppendFloat(b, w, 'g', -1, 64)
	}
}

func appendFlag(b []byte, text string, set bool) []byte {
	if !set {
		return b
	}
	return append(b, text...)
}

func appendNonZero(b []byte, key string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, key...), n, 10)
}

func appendNonEmpty(b []byte, key, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(b, key, text)
}

func appendText(b []byte, key, text string) []byte {
	return registry.AppendJSONString(append(b, key...), text)
}
