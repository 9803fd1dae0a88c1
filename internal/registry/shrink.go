package registry

// leastShrunk is below how many entries a map is left as it is.
const leastShrunk = 64

// remove takes key out of m and returns the map to use from then on: a new one when
// less than a quarter is left of the most that m has held, since a map keeps the
// memory of its largest size. most is that number and belongs to m; it costs nothing
// to be kept, as a map is largest before something is taken out of it.
func remove[K comparable, V any](m map[K]V, key K, most *int) map[K]V {
	*most = max(*most, len(m))
	delete(m, key)
	if *most < leastShrunk || 4*len(m) >= *most {
		return m
	}
	*most = len(m)
	smaller := make(map[K]V, len(m))
	for k, v := range m {
		smaller[k] = v
	}
	return smaller
}
