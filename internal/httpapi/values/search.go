package values

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// Bounds of one search. The pattern is a stranger's: its length and the length of
// the program it becomes bound the cost of one name, and the time that of all.
const (
	maxPattern = 256  // bytes
	maxProgram = 1000 // instructions
	maxSearch  = time.Second
	// searchBatch is after how many names the clock is read.
	searchBatch = 16
)

// Search finds names by a regular expression, as 1.x does: anywhere in the name.
// Its time is linear in the length of the name. It is used by one goroutine.
type Search struct {
	param   string
	literal string         // to be contained, when pattern is nil
	pattern *regexp.Regexp // nil: literal
	names   int
	until   time.Time
}

// NewSearch returns the search that a parameter asks for. An empty expression
// finds everything. One that is broken is refused with InvalidArgument, and one
// that costs too much with LimitExceeded.
func NewSearch(param, expression string) (*Search, error) {
	s := &Search{param: param, literal: expression}
	if regexp.QuoteMeta(expression) == expression {
		return s, nil
	}
	if len(expression) > maxPattern {
		return nil, registry.Refuse(registry.LimitExceeded, param, "",
			"Param '%s' is illegal, it has %d bytes and a pattern may have %d.", param, len(expression), maxPattern)
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, registry.Refuse(registry.InvalidArgument, param, expression,
			"Param '%s' is illegal, it is no regular expression: %s", param, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, s.tooCostly()
	}
	if s.pattern, err = regexp.Compile(expression); err != nil {
		return nil, s.tooCostly()
	}
	return s, nil
}

// All reports whether everything is found.
func (s *Search) All() bool { return s.pattern == nil && s.literal == "" }

func (s *Search) tooCostly() error {
	return registry.Refuse(registry.LimitExceeded, s.param, "", "Param '%s' is illegal, the pattern is too costly.", s.param)
}

// Matches reports whether the name is found. It refuses when the search has taken
// too long.
func (s *Search) Matches(name string) (bool, error) {
	if s.pattern == nil {
		return strings.Contains(name, s.literal), nil
	}
	if s.names%searchBatch == 0 {
		now := time.Now()
		if s.names == 0 {
			s.until = now.Add(maxSearch)
		} else if now.After(s.until) {
			return false, s.tooCostly()
		}
	}
	s.names++
	return s.pattern.MatchString(name), nil
}
