package config

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A codec reads and writes the values of one setting as text.
type codec struct {
	placeholder string
	words       []string // all that set takes, if they are few
	list        bool
	// set parses texts into v. Only a list takes more than one text.
	// The error says what is wrong and what to write instead, without the value.
	set func(v reflect.Value, texts []string) error
	// format is the inverse of set.
	format func(v reflect.Value) []string
}

// scalar is a codec for one value.
type scalar struct {
	placeholder string
	words       []string
	parse       func(v reflect.Value, text string) error
	format      func(v reflect.Value) string
}

func codecOf(t reflect.Type, tag reflect.StructTag) (codec, error) {
	if t.Kind() != reflect.Slice {
		one, err := scalarOf(t, tag)
		return single(one), err
	}
	one, err := scalarOf(t.Elem(), tag)
	return listOf(t, one), err
}

func single(one scalar) codec {
	return codec{
		placeholder: one.placeholder,
		words:       one.words,
		set: func(v reflect.Value, texts []string) error {
			if len(texts) != 1 {
				return errors.New("takes one value, not a list")
			}
			return one.parse(v, texts[0])
		},
		format: func(v reflect.Value) []string {
			if text := one.format(v); text != "" {
				return []string{text}
			}
			return nil
		},
	}
}

func listOf(t reflect.Type, one scalar) codec {
	return codec{
		placeholder: one.placeholder,
		words:       one.words,
		list:        true,
		set: func(v reflect.Value, texts []string) error {
			list := reflect.MakeSlice(t, len(texts), len(texts))
			for i, text := range texts {
				if err := one.parse(list.Index(i), text); err != nil {
					return err
				}
			}
			v.Set(list)
			return nil
		},
		format: func(v reflect.Value) []string {
			var texts []string
			for i := range v.Len() {
				texts = append(texts, one.format(v.Index(i)))
			}
			return texts
		},
	}
}

func scalarOf(t reflect.Type, tag reflect.StructTag) (scalar, error) {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return durations(), nil
	case reflect.TypeFor[netip.Prefix]():
		return prefixes(), nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return switches(), nil
	case reflect.Int, reflect.Int64:
		if tag.Get("unit") == "bytes" {
			return sizes(), nil
		}
		return integers(), nil
	case reflect.Float64:
		return floats(), nil
	case reflect.String:
		if enum := tag.Get("enum"); enum != "" {
			return words(strings.Split(enum, ",")), nil
		}
		return texts(), nil
	default:
		return scalar{}, fmt.Errorf("a setting cannot be a %s", t)
	}
}

func texts() scalar {
	return scalar{
		placeholder: "text",
		parse:       func(v reflect.Value, text string) error { v.SetString(text); return nil },
		format:      reflect.Value.String,
	}
}

func words(allowed []string) scalar {
	return scalar{
		placeholder: strings.Join(allowed, "|"),
		words:       allowed,
		parse: func(v reflect.Value, text string) error {
			if !slices.Contains(allowed, text) {
				return fmt.Errorf("is not one of its words; write %s", strings.Join(allowed, " or "))
			}
			v.SetString(text)
			return nil
		},
		format: reflect.Value.String,
	}
}

func switches() scalar {
	return scalar{
		placeholder: "on|off",
		words:       []string{"on", "off"},
		parse: func(v reflect.Value, text string) error {
			switch text {
			case "on", "true", "yes":
				v.SetBool(true)
			case "off", "false", "no":
				v.SetBool(false)
			default:
				return errors.New("is neither on nor off; write on or off")
			}
			return nil
		},
		format: func(v reflect.Value) string {
			if v.Bool() {
				return "on"
			}
			return "off"
		},
	}
}

func integers() scalar {
	return scalar{
		placeholder: "number",
		parse: func(v reflect.Value, text string) error {
			n, err := strconv.ParseInt(text, 10, v.Type().Bits())
			if err != nil {
				return errors.New("is not a whole number; write digits only, such as 8848")
			}
			v.SetInt(n)
			return nil
		},
		format: func(v reflect.Value) string { return strconv.FormatInt(v.Int(), 10) },
	}
}

func floats() scalar {
	return scalar{
		placeholder: "number",
		parse: func(v reflect.Value, text string) error {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
				return errors.New("is not a number; write one such as 0.5")
			}
			v.SetFloat(f)
			return nil
		},
		format: func(v reflect.Value) string { return strconv.FormatFloat(v.Float(), 'g', -1, 64) },
	}
}

func durations() scalar {
	return scalar{
		placeholder: "duration",
		parse: func(v reflect.Value, text string) error {
			d, err := time.ParseDuration(text)
			if err != nil {
				return errors.New("is not a duration; write a number with its unit, such as 500ms, 15s or 1h30m")
			}
			v.SetInt(int64(d))
			return nil
		},
		format: func(v reflect.Value) string { return formatDuration(time.Duration(v.Int())) },
	}
}

// formatDuration writes 1h30m where [time.Duration.String] writes 1h30m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

func prefixes() scalar {
	return scalar{
		placeholder: "address/bits",
		parse: func(v reflect.Value, text string) error {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				addr, err := netip.ParseAddr(text)
				if err != nil || addr.Zone() != "" {
					return errors.New("is not an address range; write one such as 10.0.0.0/8, 10.1.2.3 or fd00::/8")
				}
				prefix = netip.PrefixFrom(addr, addr.BitLen())
			}
			v.Set(reflect.ValueOf(prefix.Masked()))
			return nil
		},
		format: func(v reflect.Value) string {
			prefix, _ := v.Interface().(netip.Prefix)
			if !prefix.IsValid() {
				return ""
			}
			return prefix.String()
		},
	}
}
