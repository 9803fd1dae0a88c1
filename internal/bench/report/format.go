package report

import (
	"fmt"
	"strconv"
	"time"
)

// thousands writes a figure with commas, without its fraction unless it is small.
func thousands(f float64) string {
	if f > 0 && f < 100 && f != float64(int64(f)) {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	digits := strconv.FormatInt(int64(f+0.5), 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// rate writes so many a second, with two figures where there are less than one.
func rate(f float64) string {
	if f > 0 && f < 0.95 {
		return strconv.FormatFloat(f, 'g', 2, 64)
	}
	return thousands(f)
}

// micros writes a time in microseconds with three figures and its unit.
func micros(us float64) string {
	switch {
	case us <= 0:
		return "-"
	case us < 1000:
		return figures(us) + " µs"
	case us < 1e6:
		return figures(us/1e3) + " ms"
	default:
		return figures(us/1e6) + " s"
	}
}

// figures writes three significant ones.
func figures(f float64) string {
	switch {
	case f < 10:
		return strconv.FormatFloat(f, 'f', 2, 64)
	case f < 100:
		return strconv.FormatFloat(f, 'f', 1, 64)
	default:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// figure writes a value with its unit.
func figure(value float64, unit string) string {
	switch unit {
	case "B":
		if value >= 1<<20 || value <= -1<<20 {
			return mebibytes(int64(value))
		}
		if value >= 10<<10 {
			return fmt.Sprintf("%.1f KiB", value/1024)
		}
		return thousands(value) + " B"
	case "s":
		return time.Duration(value * float64(time.Second)).Round(time.Millisecond).String()
	case "/s":
		return rate(value) + unit
	case "":
		return thousands(value)
	default:
		return strconv.FormatFloat(value, 'f', 2, 64) + " " + unit
	}
}
