package modern

import "github.com/rollcall-registry/rollcall/internal/registry"

// PageOf returns the bounds of a page in a list of that length, the first page
// being 1. A number below 1 is the first page too, and a size below 1 is none of the
// list.
func PageOf(number, size, length int) (from, to int) {
	size = max(size, 0)
	// Both are 32-bit numbers, so their product does not overflow.
	from = min((max(number, 1)-1)*size, length)
	return from, from + min(size, length-from)
}

// Ephemeral reports whether a service holds ephemeral instances: by its kind, or
// when it has none, by what is in it.
func Ephemeral(view *registry.View) bool {
	switch view.Info.Kind {
	case registry.KindEphemeral:
		return true
	case registry.KindPersistent:
		return false
	case registry.KindAny:
	}
	return len(view.Instances) == 0 || view.Instances[0].Ephemeral
}
