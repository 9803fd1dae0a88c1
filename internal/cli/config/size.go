package config

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// A sizeUnit is a unit of bytes.
type sizeUnit struct {
	name  string
	bytes int64
}

// sizeUnits lists the units from large to small. The decimal ones are read only.
func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"TiB", 1 << 40},
		{"TB", 1e12},
		{"GiB", 1 << 30},
		{"GB", 1e9},
		{"MiB", 1 << 20},
		{"MB", 1e6},
		{"KiB", 1 << 10},
		{"KB", 1e3},
		{"B", 1},
	}
}

func sizes() scalar {
	return scalar{
		placeholder: "size",
		parse: func(v reflect.Value, text string) error {
			n, ok := parseSize(text)
			if !ok || v.OverflowInt(n) {
				return errors.New("is not a size; write a whole number with its unit, such as 64KiB, 8MiB or 1GiB")
			}
			v.SetInt(n)
			return nil
		},
		format: func(v reflect.Value) string { return formatSize(v.Int()) },
	}
}

// parseSize reads a whole number of bytes such as 512, 64KiB or "8 mib".
func parseSize(text string) (int64, bool) {
	unit := int64(1)
	for _, u := range sizeUnits() {
		if at := len(text) - len(u.name); at > 0 && strings.EqualFold(text[at:], u.name) {
			text, unit = strings.TrimSpace(text[:at]), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

// formatSize writes n in the largest binary unit that divides it.
func formatSize(n int64) string {
	for _, u := range sizeUnits() {
		if binary := u.bytes&(u.bytes-1) == 0; binary && n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
