package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// Sources say where settings come from. Each may be empty. A flag beats the
// environment, which beats the file, which beats the default.
type Sources struct {
	Flags   *pflag.FlagSet // parsed, with the flags of AddFlags
	Environ []string       // NAME=value, as os.Environ gives it; empty values count as absent
	File    string         // path of a YAML file
}

// Loaded is what Load read.
type Loaded[T any] struct {
	Config T
	// Origins tells for each key that was given which source won, in words
	// such as "--listen" or "ROLLCALL_LISTEN" or the name of the file.
	Origins map[string]string
	// UnknownEnv names the variables that begin as ours do and are none, in order.
	UnknownEnv []string
}

// A Fault is one thing that is wrong with the given settings.
type Fault struct {
	Key    string // the setting; empty when the fault is the source's
	Value  string // as it was given
	Source string // such as "--listen", "ROLLCALL_LISTEN" or the name of the file
	Reason string // what is wrong and what to do
}

func (f *Fault) Error() string {
	if f.Key == "" {
		return f.Source + ": " + f.Reason
	}
	return fmt.Sprintf("%s: %q (from %s) %s", f.Key, f.Value, f.Source, f.Reason)
}

// validator is what a configuration struct may implement to check its values.
// Its error may join several; each begins with the key of the setting.
type validator interface{ Validate() error }

// Load reads the settings. Its error joins all faults, of every source: each
// [*Fault], and what the Validate method of T reports if it has one.
// What is not at fault is loaded even then.
func (s *Schema[T]) Load(src Sources) (Loaded[T], error) {
	out := Loaded[T]{Config: s.defaults, Origins: make(map[string]string)}
	values := make(map[string]any)
	var faults []error
	for _, l := range s.layers(src, &out.UnknownEnv) {
		ko := koanf.New(".")
		if err := ko.Load(l.provider, l.parser); err != nil {
			faults = append(faults, &Fault{Source: l.name, Reason: oneLine(err)})
			continue
		}
		for _, key := range ko.Keys() {
			setting := s.byKey[key]
			if setting == nil {
				faults = append(faults, s.unknownKey(key, ko.Get(key), l.name))
				continue
			}
			values[key], out.Origins[key] = ko.Get(key), l.origin(setting)
		}
	}
	faults = append(faults, s.decode(&out, values)...)
	if v, ok := any(out.Config).(validator); ok {
		if err := v.Validate(); err != nil {
			faults = append(faults, err)
		}
	}
	slices.Sort(out.UnknownEnv)
	return out, errors.Join(faults...)
}

func (s *Schema[T]) decode(out *Loaded[T], values map[string]any) (faults []error) {
	root := reflect.ValueOf(&out.Config).Elem()
	for _, n := range s.settings {
		raw, given := values[n.Key]
		if !given {
			continue
		}
		texts, err := textsOf(raw, n.List)
		if err == nil {
			err = n.codec.set(root.FieldByIndex(n.index), texts)
		}
		if err != nil {
			faults = append(faults, &Fault{Key: n.Key, Value: show(raw), Source: out.Origins[n.Key], Reason: err.Error()})
		}
	}
	return faults
}

// A layer is one source in the words of koanf.
type layer struct {
	name     string
	provider koanf.Provider
	parser   koanf.Parser
	origin   func(*Setting) string
}

// layers lists the sources that are there, the weakest first.
func (s *Schema[T]) layers(src Sources, unknownEnv *[]string) []layer {
	var layers []layer
	if src.File != "" {
		layers = append(layers, layer{
			name: src.File, provider: file.Provider(src.File), parser: yaml.Parser(),
			origin: func(*Setting) string { return src.File },
		})
	}
	layers = append(layers, layer{
		name: "the environment",
		provider: env.Provider(".", env.Opt{
			Prefix:      EnvPrefix,
			EnvironFunc: func() []string { return src.Environ },
			TransformFunc: func(name, value string) (string, any) {
				setting := s.byEnv[name]
				if setting == nil && !fromKubernetes(name) {
					*unknownEnv = append(*unknownEnv, name)
				}
				if setting == nil || value == "" {
					return "", nil
				}
				return setting.Key, value
			},
		}),
		origin: func(n *Setting) string { return n.Env },
	})
	if src.Flags != nil {
		layers = append(layers, layer{
			name: "the flags",
			provider: posflag.ProviderWithFlag(src.Flags, ".", nil, func(f *pflag.Flag) (string, any) {
				setting, value := s.byFlag[f.Name], f.Value
				given, ours := value.(*flagValue)
				if setting == nil || !ours {
					return "", nil
				}
				return setting.Key, slices.Clone(given.given)
			}),
			origin: func(n *Setting) string { return "--" + n.Flag },
		})
	}
	return layers
}

// kubernetesEnv matches what Kubernetes puts into the environment of each
// container for a Service whose name begins with rollcall.
// Source: Kubernetes documentation, "Service: environment variables".
var kubernetesEnv = regexp.MustCompile(`^ROLLCALL_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_.+)?)$`)

func fromKubernetes(name string) bool { return kubernetesEnv.MatchString(name) }

// textsOf returns a raw value of any source as the texts that a codec reads.
// Texts of a list may hold several values with commas between.
func textsOf(raw any, list bool) ([]string, error) {
	var given []string
	switch v := raw.(type) {
	case nil:
		return nil, errors.New("is empty; give a value or remove the line")
	case []string: // flags
		given = v
		if !list && len(given) > 1 {
			given = given[len(given)-1:] // the last one counts, as in other programs
		}
	case []any:
		for _, one := range v {
			switch one.(type) {
			case nil, []any, map[string]any:
				return nil, errors.New("must be a list of plain values")
			}
			given = append(given, fmt.Sprint(one))
		}
		if !list {
			return nil, errors.New("takes one value, not a list")
		}
	case map[string]any:
		return nil, errors.New("takes a value, not a section")
	default:
		given = []string{fmt.Sprint(v)}
	}
	if !list {
		return given, nil
	}
	var parts []string
	for _, text := range given {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				parts = append(parts, part)
			}
		}
	}
	return parts, nil
}

func show(raw any) string {
	switch v := raw.(type) {
	case nil:
		return ""
	case []string:
		return strings.Join(v, ",")
	default:
		return fmt.Sprint(v)
	}
}

// oneLine is the text of err without line breaks, which YAML errors have.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
