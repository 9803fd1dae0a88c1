package v3

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
)

// page is a part of a list that is asked for.
type page struct{ number, size int }

// defaultPageSize is the size of a page when none is asked for. Source: Nacos
// PageForm.
const defaultPageSize = 100

// readPage returns the page of a list, the first being 1.
func readPage(x *httpapi.Exchange) (page, error) {
	f := result.NewForm(x, "pageForm")
	p := page{f.Int("pageNo", result.JavaPlainInt, 1), f.Int("pageSize", result.JavaPlainInt, defaultPageSize)}
	for _, field := range []struct {
		name string
		n    int
	}{{"pageNo", p.number}, {"pageSize", p.size}} {
		if field.n < 1 {
			f.Refuse(result.Invalid("Required parameter '" + field.name + "' should be positive integer, current is " + strconv.Itoa(field.n)))
		}
	}
	return p, f.Err()
}

// begin begins a page of a list of total items; the array of the items and a closing
// brace must follow. As in the original there is one page more than needed when the
// last one is full (live 3.0.3).
func (p page) begin(b []byte, total int) []byte {
	pages := 0
	if total > 0 {
		pages = total/max(p.size, 1) + 1
	}
	b = strconv.AppendInt(append(b, `{"totalCount":`...), int64(total), 10)
	b = strconv.AppendInt(append(b, `,"pageNumber":`...), int64(p.number), 10)
	b = strconv.AppendInt(append(b, `,"pagesAvailable":`...), int64(pages), 10)
	return append(b, `,"pageItems":`...)
}
