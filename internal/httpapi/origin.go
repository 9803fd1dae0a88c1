package httpapi

import (
	"net/url"
	"strings"
)

// FromOtherSite reports whether a browser says that it sends the request on behalf
// of a web page of another site: with an Origin that is not the host asked, or
// with Sec-Fetch-Site. Programs send neither.
func (x *Exchange) FromOtherSite() bool {
	switch x.Header("Sec-Fetch-Site") {
	case "", "same-origin", "none": // none: the user typed it
	default:
		return true
	}
	origin := x.Header("Origin")
	if origin == "" {
		return false
	}
	page, err := url.Parse(origin) // "null" has no host
	return err != nil || !strings.EqualFold(page.Host, alias(x.head.get("Host")))
}
