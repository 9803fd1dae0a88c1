package config

import (
	"fmt"
	"strings"
)

// Reference writes the reference page of all settings as Markdown: one section
// per section of keys, in the order of their declaration.
func (s *Schema[T]) Reference() string {
	var b strings.Builder
	for _, section := range s.sections() {
		title := "General"
		if section != "" {
			title = "`" + section + "`"
		}
		fmt.Fprintf(&b, "## %s\n\n", title)
		if intro := s.intros[section]; intro != "" {
			fmt.Fprintf(&b, "%s\n\n", intro)
		}
		for _, n := range s.settings {
			if n.Section() == section {
				writeSetting(&b, n)
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// sections lists the sections, the plain keys first.
func (s *Schema[T]) sections() []string {
	var plain bool
	var sections []string
	seen := make(map[string]bool)
	for _, n := range s.settings {
		section := n.Section()
		plain = plain || section == ""
		if section != "" && !seen[section] {
			seen[section] = true
			sections = append(sections, section)
		}
	}
	if plain {
		return append([]string{""}, sections...)
	}
	return sections
}

func writeSetting(b *strings.Builder, n *Setting) {
	fmt.Fprintf(b, "### %s\n\n%s\n\n", n.Key, n.Help)
	value := "`" + n.Value + "`"
	if n.List {
		value = "list of " + value
	}
	fmt.Fprintf(b, "- Value: %s\n", value)
	switch {
	case n.Default != "":
		fmt.Fprintf(b, "- Default: `%s`\n", n.Default)
	case n.Unset != "":
		fmt.Fprintf(b, "- Default: none; %s\n", n.Unset)
	default:
		b.WriteString("- Default: none\n")
	}
	fmt.Fprintf(b, "- Flag: `--%s`\n- Environment: `%s`\n", n.Flag, n.Env)
	if n.Reload {
		b.WriteString("- Re-read on SIGHUP\n")
	}
	b.WriteString("\n")
}
