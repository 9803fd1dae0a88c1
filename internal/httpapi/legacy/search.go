package legacy

import (
	"regexp"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Bounds of one search. The pattern is a stranger's: without counted repetition
// its length bounds the cost of one name, and the time that of all.
const (
	maxPattern = 64 // bytes
	maxSearch  = time.Second
	// searchBatch is after how many names the clock is read.
	searchBatch = 256
)

// searchDom lists the services of a namespace in whose name or owners a regular
// expression is found.
func (a *API) searchDom(x *httpapi.Exchange) {
	p := x.Params()
	text, err := p.Required("expr")
	if err != nil {
		a.fail(x, err)
		return
	}
	matches, err := matcher(text)
	if err != nil {
		a.fail(x, err)
		return
	}
	doms, err := a.search(registry.NamespaceID(p.Optional("namespaceId", "")), matches)
	if err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"doms":`...)
	x.Scratch = append(appendStrings(b, doms), '}')
	x.JSON(200, x.Scratch)
}

func (a *API) search(namespace string, matches func(string) bool) ([]string, error) {
	store, doms := a.core.Store(), []string{}
	keys, _ := store.Services(namespace, "", 0, -1)
	until := time.Now().Add(maxSearch)
	for n, key := range keys {
		if n%searchBatch == searchBatch-1 && time.Now().After(until) {
			return nil, illegal("Param 'expr' is illegal, the pattern is too costly.")
		}
		view := store.View(key)
		if view == nil { // removed since
			continue
		}
		name := shown(key)
		if matches(name + ":[" + strings.Join(legacyOf(view.Info).Owners, ", ") + "]") {
			doms = append(doms, name)
		}
	}
	return doms, nil
}

// matcher returns the test whether a text contains what expr describes.
func matcher(expr string) (func(string) bool, error) {
	if regexp.QuoteMeta(expr) == expr {
		return func(text string) bool { return strings.Contains(text, expr) }, nil
	}
	if len(expr) > maxPattern || strings.Contains(expr, "{") {
		return nil, illegal("Param 'expr' is illegal, a pattern may have %d bytes and no counted repetition.", maxPattern)
	}
	pattern, err := regexp.Compile(expr)
	if err != nil {
		return nil, illegal("Param 'expr' is illegal, it is no regular expression.")
	}
	return pattern.MatchString, nil
}
