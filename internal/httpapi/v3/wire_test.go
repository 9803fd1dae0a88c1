package v3

import (
	"flag"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/modern"
	"github.com/rollcall-registry/rollcall/internal/httpapi/modern/moderntest"
)

var update = flag.Bool("update", false, "write the answers of this build into testdata/wire")

func newAPI(p modern.Parts) moderntest.API { return New(p) }

func TestWire(t *testing.T) { moderntest.Wire(t, *update, newAPI) }
