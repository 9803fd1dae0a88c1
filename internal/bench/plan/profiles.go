package plan

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// The profiles are scenario files as users write them.
//
//go:embed profiles/*.yaml
var profiles embed.FS

// Profiles are the names of the built-in profiles, from the shortest to the longest.
func Profiles() []string { return []string{"smoke", "laptop", "big"} }

// Profile returns a built-in profile.
func Profile(name string) (*Plan, error) {
	if !slices.Contains(Profiles(), name) {
		return nil, fmt.Errorf("profile: %q is none; there are %s", name, strings.Join(Profiles(), ", "))
	}
	text, err := profiles.ReadFile("profiles/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	return Parse(text)
}
