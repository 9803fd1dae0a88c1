package config

import (
	"fmt"
	"strings"
)

// unknownKey is the fault of a key that no setting has, with the nearest key
// that one has.
func (s *Schema[T]) unknownKey(key string, value any, source string) *Fault {
	return &Fault{
		Key: key, Value: show(value), Source: source,
		Reason: "is no setting; " + s.advice(key),
	}
}

func (s *Schema[T]) advice(key string) string {
	var within []string
	best, distance := "", len(key)/3+1
	for _, n := range s.settings {
		if strings.HasPrefix(n.Key, key+".") {
			within = append(within, n.Key)
		}
		if d := editDistance(key, n.Key); d <= distance {
			best, distance = n.Key, d-1
		}
	}
	switch {
	case len(within) > 0:
		return fmt.Sprintf("%s is a section with the keys %s", key, strings.Join(within, ", "))
	case best != "":
		return "did you mean " + best + "?"
	default:
		return "rollcall serve --help lists all keys"
	}
}

// editDistance is the number of bytes to insert, delete or replace to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
