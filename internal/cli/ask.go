package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// publicNamespace is the namespace of those who name none.
const publicNamespace = "public"

// space is the namespace that is asked about.
func (c *client) space() string { return cmp.Or(c.namespace, publicNamespace) }

// get reads the JSON answer of a path of the operator API into v.
func (c *client) get(ctx context.Context, path string, query url.Values, v any) error {
	body, err := c.do(ctx, http.MethodGet, operatorAPI+path, query)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return c.broken(ctx, err)
	}
	return nil
}

// pageSize is how many services or instances are asked for at a time.
const pageSize = 1000

// services returns the services of the namespace; those of one group if it is not
// empty.
func (c *client) services(ctx context.Context, group string) (opsv1.Services, error) {
	all := opsv1.Services{Services: []opsv1.ServiceSummary{}}
	for offset := 0; offset == 0 || offset < all.Total; offset += pageSize {
		var page opsv1.Services
		err := c.get(ctx, "/services", parameters(
			"namespace", c.namespace, "group", group, "offset", strconv.Itoa(offset), "limit", strconv.Itoa(pageSize),
		), &page)
		if err != nil {
			return all, err
		}
		all.Services, all.Total = append(all.Services, page.Services...), page.Total
	}
	return all, nil
}

// instances returns the instances of a service.
func (c *client) instances(ctx context.Context, s serviceName) (opsv1.Instances, error) {
	var all opsv1.Instances
	for offset := 0; offset == 0 || offset < all.Total; offset += pageSize {
		var page opsv1.Instances
		err := c.get(ctx, "/instances", parameters(
			"namespace", c.namespace, "group", s.group, "service", s.name, "offset", strconv.Itoa(offset), "limit", strconv.Itoa(pageSize),
		), &page)
		if err != nil {
			return all, err
		}
		page.Instances = append(all.Instances, page.Instances...)
		all = page
	}
	return all, nil
}

// parameters makes a query of names and values in turn; empty values are left out.
func parameters(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
