// Package config turns a documented configuration struct into command-line
// flags, environment variables, YAML keys, help text and a reference page, and
// reads such a struct from all of them.
//
// The struct belongs to the part that it configures and knows nothing of this
// package: its field tags are inert text.
//
//	type Config struct {
//		// MinWindow is how long changes are gathered at least.
//		MinWindow time.Duration `config:"push.min-window" help:"Shortest time in which changes are merged." reload:"true"`
//	}
//
// The tags are:
//
//	config  the YAML key, such as push.min-window; "-" leaves the field out.
//	        A field of a struct type needs none: its fields are read in its place.
//	help    what the setting does, in whole sentences (required). On a field of
//	        a struct type: the introduction of its section on the reference page.
//	enum    the allowed words of a string, such as "text,json"
//	unit    "bytes": the number is a size and is written 64KiB or 8MiB
//	value   what stands for the value in help, such as host:port
//	unset   what an empty default means, for help
//	bare    "true": the flag of a bool may stand alone, without a value
//	reload  "true": the setting is taken over when the server reloads
//
// Flag and environment names follow from the key: push.min-window is
// --push-min-window and ROLLCALL_PUSH_MIN_WINDOW. Defaults are the values of the
// struct that is handed to [New].
//
// A Schema does not change after New and may be used concurrently.
package config

import (
	"fmt"
	"reflect"
	"strings"
)

// EnvPrefix begins the name of every environment variable that is read.
const EnvPrefix = "ROLLCALL_"

// A Setting is one value that an operator can choose.
type Setting struct {
	Key     string   // in YAML, such as push.min-window
	Flag    string   // without dashes, such as push-min-window
	Env     string   // such as ROLLCALL_PUSH_MIN_WINDOW
	Help    string   // one or more sentences
	Value   string   // what stands for the value in help, such as duration or on|off
	Default string   // as an operator would write it; empty when there is none
	Unset   string   // what an empty Default means
	Words   []string // all values there are; empty when there are many
	List    bool     // whether it may be given more than once
	Bare    bool     // whether the flag may stand without a value
	Reload  bool     // whether a running server takes over a new value

	index []int // of the field, from the root struct
	codec codec
}

// Section is the part of the key before its first dot; empty for plain keys.
func (s *Setting) Section() string {
	section, _, dotted := strings.Cut(s.Key, ".")
	if !dotted {
		return ""
	}
	return section
}

// A Schema holds the settings that the struct type T declares.
type Schema[T any] struct {
	defaults T
	settings []*Setting
	byKey    map[string]*Setting
	byFlag   map[string]*Setting
	byEnv    map[string]*Setting
	intros   map[string]string // of sections
}

// New reads the tags of T, a struct type whose default values are given. It
// fails when a field lacks a tag, has a type that cannot be written as text, or
// takes a name that another field has: mistakes of the programmer, which any
// test that calls New finds.
func New[T any](defaults T) (*Schema[T], error) {
	s := &Schema[T]{
		defaults: defaults,
		byKey:    make(map[string]*Setting),
		byFlag:   make(map[string]*Setting),
		byEnv:    make(map[string]*Setting),
		intros:   make(map[string]string),
	}
	root := reflect.ValueOf(defaults)
	if root.Kind() != reflect.Struct {
		return nil, fmt.Errorf("config: %T is not a struct", defaults)
	}
	if err := s.addStruct(root, nil, ""); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return s, s.checkNesting()
}

// Settings lists all settings in the order of their declaration. The caller
// must not change them.
func (s *Schema[T]) Settings() []*Setting { return s.settings }

func (s *Schema[T]) addStruct(v reflect.Value, index []int, intro string) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		at := append(append([]int(nil), index...), i)
		key, tagged := field.Tag.Lookup("config")
		switch {
		case key == "-", !field.IsExported() && !field.Anonymous:
			continue
		case !tagged && field.Type.Kind() == reflect.Struct:
			if err := s.addStruct(v.Field(i), at, field.Tag.Get("help")); err != nil {
				return err
			}
			continue
		case !tagged:
			return fmt.Errorf("%s.%s has no config tag; give one, or - to leave it out", v.Type(), field.Name)
		}
		setting, err := newSetting(key, field, v.Field(i))
		if err != nil {
			return fmt.Errorf("%s.%s: %w", v.Type(), field.Name, err)
		}
		setting.index = at
		if err := s.add(setting); err != nil {
			return fmt.Errorf("%s.%s: %w", v.Type(), field.Name, err)
		}
		if section := setting.Section(); intro != "" && s.intros[section] == "" {
			s.intros[section] = intro
		}
	}
	return nil
}

func newSetting(key string, field reflect.StructField, value reflect.Value) (*Setting, error) {
	if strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || strings.Trim(key, ".-") != key || key == "" {
		return nil, fmt.Errorf("%q is no key; use words of a-z and 0-9 with - between, and dots between sections", key)
	}
	help := field.Tag.Get("help")
	if help == "" {
		return nil, fmt.Errorf("%s has no help tag", key)
	}
	c, err := codecOf(field.Type, field.Tag)
	if err != nil {
		return nil, err
	}
	flat := strings.ReplaceAll(key, ".", "-")
	placeholder := field.Tag.Get("value")
	if placeholder == "" {
		placeholder = c.placeholder
	}
	return &Setting{
		Key:     key,
		Flag:    flat,
		Env:     EnvPrefix + strings.ToUpper(strings.ReplaceAll(flat, "-", "_")),
		Help:    help,
		Value:   placeholder,
		Default: strings.Join(c.format(value), ","),
		Unset:   field.Tag.Get("unset"),
		Words:   c.words,
		List:    c.list,
		Bare:    field.Tag.Get("bare") == "true" && field.Type.Kind() == reflect.Bool,
		Reload:  field.Tag.Get("reload") == "true",
		codec:   c,
	}, nil
}

func (s *Schema[T]) add(n *Setting) error {
	if old := s.byEnv[n.Env]; old != nil { // equal keys and equal flags have equal variables
		return fmt.Errorf("the keys %s and %s have the same variable %s", old.Key, n.Key, n.Env)
	}
	s.settings = append(s.settings, n)
	s.byKey[n.Key], s.byFlag[n.Flag], s.byEnv[n.Env] = n, n, n
	return nil
}

// checkNesting refuses a key that is also the section of another, which no
// YAML file could hold.
func (s *Schema[T]) checkNesting() error {
	for _, n := range s.settings {
		for section := n.Key; ; {
			dot := strings.LastIndexByte(section, '.')
			if dot < 0 {
				break
			}
			section = section[:dot]
			if s.byKey[section] != nil {
				return fmt.Errorf("config: the key %s is also the section of %s", section, n.Key)
			}
		}
	}
	return nil
}
