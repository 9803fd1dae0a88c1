package v1

import "github.com/rollcall-registry/rollcall/internal/httpapi"

// Resources of calls that are about no single service, as permissions of 1.4.8
// spell them. Calls that 1.4.8 leaves open are open here too.
const (
	resourceSwitches    httpapi.Resource = "naming/switches"
	resourceLog         httpapi.Resource = "naming/log"
	resourceNamespaces  httpapi.Resource = "console/namespaces"
	resourceUsers       httpapi.Resource = "console/users"
	resourceRoles       httpapi.Resource = "console/roles"
	resourcePermissions httpapi.Resource = "console/permissions"
)
