package v1

import (
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// defaultSubscribers is the page size of a call that names none. Source: Nacos
// ServiceController.
const defaultSubscribers = 1000

// subscribers answers GET /service/subscribers: who is told of changes, over
// whatever protocol. As in 1.4.8 the match is fuzzy (service and group need only
// contain what is asked for, a namespace only begin so), and whatever is wrong
// but a missing name is an empty list.
func (a *API) subscribers(x *httpapi.Exchange) {
	p := x.Params()
	want, err := namedService(p)
	if err != nil {
		a.fail(x, err)
		return
	}
	list := a.core.Store().FindSubscribers(func(key registry.ServiceKey) bool {
		return strings.HasPrefix(key.Namespace, want.Namespace) &&
			strings.Contains(key.Group, want.Group) && strings.Contains(key.Name, want.Name)
	})
	number, size := p.IntOrZero("pageNo"), p.IntOrZero("pageSize")
	if p.Optional("pageNo", "") == "" {
		number = 1
	}
	if p.Optional("pageSize", "") == "" {
		size = defaultSubscribers
	}
	count := len(list)
	page, err := newPage(number, size)
	if err != nil || page.offset > count {
		count = 0
	}
	from, to := page.of(count)
	b := append(x.Scratch[:0], `{"subscribers":[`...)
	for n, s := range list[from:to] {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendSubscriber(b, s)
	}
	b = append(b, `],"count":`...)
	b = strconv.AppendInt(b, int64(count), 10)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

func appendSubscriber(b []byte, s *registry.Subscriber) []byte {
	b = append(b, `{"addrStr":`...)
	b = registry.AppendJSONString(b, s.Addr.String())
	b = append(b, `,"agent":`...)
	b = registry.AppendJSONString(b, s.Agent)
	b = append(b, `,"app":`...)
	b = registry.AppendJSONString(b, s.App)
	b = append(b, `,"ip":`...)
	b = registry.AppendJSONString(b, s.Addr.Addr().String())
	b = append(b, `,"namespaceId":`...)
	b = registry.AppendJSONString(b, s.Service.Namespace)
	b = append(b, `,"serviceName":`...)
	b = appendGrouped(b, s.Service)
	return append(b, '}')
}
