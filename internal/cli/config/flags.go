package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// AddFlags adds a flag for each setting, those without a section first. A flag
// only keeps the texts it was given: [Schema.Load] judges them, so that all
// faults are reported at once.
func (s *Schema[T]) AddFlags(fs *pflag.FlagSet) {
	for _, n := range slices.Concat(s.plain(true), s.plain(false)) {
		f := fs.VarPF(&flagValue{setting: n}, n.Flag, "", flagUsage(n))
		f.DefValue = "" // flagUsage tells the default; pflag would leave out zeros
		if n.Bare {
			f.NoOptDefVal = "true"
		}
	}
}

// plain lists the settings without a section, or those with one.
func (s *Schema[T]) plain(plain bool) []*Setting {
	return slices.DeleteFunc(slices.Clone(s.settings), func(n *Setting) bool { return (n.Section() == "") != plain })
}

// flagUsage is the help of a flag: what it does, and below it the other two
// names of the setting and its default.
func flagUsage(n *Setting) string {
	var b strings.Builder
	b.WriteString(n.Help)
	if n.List {
		b.WriteString(" May be given more than once.")
	}
	b.WriteString("\nenv " + n.Env + ", key " + n.Key)
	if text := cmp.Or(n.Default, n.Unset); text != "" {
		b.WriteString(", default " + text)
	}
	return b.String()
}

// A flagValue is the pflag.Value of one setting.
type flagValue struct {
	setting *Setting
	given   []string // in the order of the command line
}

func (v *flagValue) Set(text string) error {
	v.given = append(v.given, text)
	return nil
}

func (v *flagValue) String() string { return strings.Join(v.given, ",") }

// Type is what pflag shows for the value; it shows nothing for a bool.
func (v *flagValue) Type() string {
	if v.setting.Bare {
		return "bool"
	}
	return v.setting.Value
}
