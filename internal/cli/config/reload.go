package config

import (
	"reflect"
)

// Adopt returns running with the value of next in every setting that can be
// reloaded. The settings that differ are listed by key: changed ones were taken
// over, restart ones were not and wait for a restart.
func (s *Schema[T]) Adopt(running, next T) (adopted T, changed, restart []string) {
	adopted = running
	to, from := reflect.ValueOf(&adopted).Elem(), reflect.ValueOf(&next).Elem()
	for _, n := range s.settings {
		was, now := to.FieldByIndex(n.index), from.FieldByIndex(n.index)
		switch {
		case reflect.DeepEqual(was.Interface(), now.Interface()):
		case n.Reload:
			was.Set(now)
			changed = append(changed, n.Key)
		default:
			restart = append(restart, n.Key)
		}
	}
	return adopted, changed, restart
}
