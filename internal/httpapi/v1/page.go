package v1

import (
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// page is a part of a list.
type page struct{ offset, limit int } // neither is negative

// newPage returns the page of that number, the first being 1. A number below 1 is
// the first page too. Both are 32-bit numbers, so nothing overflows.
func newPage(number, size int) (page, error) {
	if size < 0 {
		return page{}, registry.Refuse(registry.InvalidArgument, "pageSize", "",
			"Param 'pageSize' is illegal, it can't be negative.")
	}
	return page{offset: max(number-1, 0) * size, limit: size}, nil
}

// of returns the bounds of the page in a list of that length.
func (p page) of(length int) (from, to int) {
	from = min(p.offset, length)
	return from, from + min(p.limit, length-from)
}

// listPage returns the page that GET /service/list must name. As in 1.4.8 what is
// no number counts as 0.
func listPage(p *httpapi.Params) (page, error) {
	for _, name := range []string{"pageNo", "pageSize"} {
		if _, err := p.Required(name); err != nil {
			return page{}, err
		}
	}
	return newPage(p.IntOrZero("pageNo"), p.IntOrZero("pageSize"))
}

// boundPage returns the page that a call must name whose parameters the original
// binds by annotation.
func boundPage(p *httpapi.Params) (number, size int, err error) {
	if number, err = p.BoundInt("pageNo"); err != nil {
		return 0, 0, err
	}
	size, err = p.BoundInt("pageSize")
	return number, size, err
}
