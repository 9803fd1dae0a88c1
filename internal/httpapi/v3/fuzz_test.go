package v3

import (
	"testing"

	"github.com/rollcall-registry/rollcall/internal/httpapi/modern/moderntest"
)

func FuzzRequest(f *testing.F) { moderntest.Fuzz(f, newAPI) }
