"""Data of the fictional shop: errors, releases, flags and pain points."""

# Releases, oldest first, each with its age in days.
RELEASES = [
    ("shop@2.3.4", 36.0),
    ("shop@2.4.0", 24.2),
    ("shop@2.4.1", 17.1),
    ("shop@2.5.0", 9.6),
    ("shop@2.5.1", 6.9),
    ("shop@2.5.2", 1.8),
]

CAMPAIGNS = [
    ("Autumn sale", 13.4, "20% off all shoes for three days", {"channel": "newsletter", "recipients": "48200"}),
    ("Price comparison feed", 20.5, "Listed at two more portals", {"channel": "partners"}),
]
INCIDENTS = [
    ("Payment provider down", 11.3, "Card payments failed for 40 minutes", {"severity": "high"}),
    ("Search index rebuilt", 3.2, "Slow responses for about an hour", {"severity": "low"}),
]

BROWSERS = [
    ("Chrome", "140.0.0", "Windows", "", 34),
    ("Chrome Mobile", "140.0.0", "Android", "Pixel 9", 22),
    ("Mobile Safari", "19.0", "iOS", "iPhone", 21),
    ("Safari", "19.0", "Mac OS X", "Mac", 9),
    ("Firefox", "145.0", "Windows", "", 8),
    ("Edge", "140.0.0", "Windows", "", 6),
]
COUNTRIES = [("DE", 34), ("FR", 18), ("US", 16), ("GB", 12), ("NL", 8), ("ES", 7), ("PL", 5)]
ENVIRONMENTS = [("production", 88), ("staging", 12)]


def frame(file, function, line, source=(), own=True):
    """Returns a stack frame; the middle line of `source` is the current one."""
    it = {"filename": file, "function": function, "lineno": line, "in_app": own}
    if source:
        middle = len(source) // 2
        it["pre_context"] = list(source[:middle])
        it["context_line"] = source[middle]
        it["post_context"] = list(source[middle + 1 :])
    return it


REACT = [
    frame("/node_modules/react-dom/client.js", "dispatchEvent", 14211, own=False),
    frame("/node_modules/react-dom/client.js", "batchedUpdates", 11804, own=False),
    frame("/node_modules/react-dom/client.js", "executeDispatch", 12917, own=False),
]
DJANGO = [
    frame("site-packages/django/core/handlers/exception.py", "inner", 55, own=False),
    frame("site-packages/django/core/handlers/base.py", "_get_response", 197, own=False),
]

# Kinds of errors, with events per day and their first and last day (days ago).
KINDS = [
    {
        "type": "TypeError",
        "value": "Cannot read properties of undefined (reading 'total')",
        "transaction": "/checkout",
        "platform": "javascript",
        "daily": 26,
        "from": 9.6,
        "to": 1.6,
        "handled": False,
        "frames": REACT
        + [
            frame("src/checkout/Summary.tsx", "onSubmit", 88, ["  const submit = async () => {", "    setBusy(true);", "    const order = await placeOrder(cart.current.total);", "    setBusy(false);", "  };"]),
            frame("src/checkout/placeOrder.ts", "placeOrder", 41, ["export async function placeOrder(cart: Cart) {", "  const voucher = cart.vouchers[0];", "  const total = voucher.cart.total - voucher.value;", "  return post('/orders', { total });", "}"]),
        ],
    },
    {
        "type": "PaymentDeclined",
        "value": "The card was declined by the issuer (code 05)",
        "transaction": "POST /api/payments",
        "platform": "python",
        "daily": 11,
        "peak": (11.3, 0.06, 90),
        "frames": DJANGO
        + [
            frame("shop/payments/views.py", "create_payment", 61, ["    order = get_order(request)", "    with transaction.atomic():", "        payment = provider.charge(order.total, token)", "        order.mark_paid(payment)", "    return Response(payment)"]),
            frame("shop/payments/provider.py", "charge", 118, ["        answer = self.http.post('/charges', json=body)", "        if answer.status_code == 402:", "            raise PaymentDeclined(answer.json()['message'])", "        answer.raise_for_status()", "        return Charge(answer.json())"]),
        ],
        "cause": ("HTTPError", "402 Client Error: Payment Required for url: https://pay.example/charges"),
    },
    {
        "type": "TimeoutError",
        "value": "Search did not answer within 2000 ms",
        "transaction": "/search",
        "platform": "node",
        "daily": 9,
        "peak": (3.2, 0.05, 70),
        "frames": [
            frame("node_modules/undici/lib/core/connect.js", "onConnectTimeout", 237, own=False),
            frame("server/search/client.ts", "query", 52, ["  const timeout = AbortSignal.timeout(2000);", "  try {", "    return await index.search(text, { signal: timeout });", "  } catch (error) {", "    throw new TimeoutError('Search did not answer');"]),
        ],
    },
    {
        "type": "ChunkLoadError",
        "value": "Loading chunk 417 failed. (https://shop.example/assets/417.js)",
        "transaction": "/product/:id",
        "platform": "javascript",
        "daily": 8,
        "frames": [frame("webpack/runtime/jsonp", "onScriptComplete", 61, own=False), frame("src/product/Gallery.tsx", "lazyZoom", 12)],
    },
    {
        "type": "NetworkError",
        "value": "Failed to fetch",
        "transaction": "/cart",
        "platform": "javascript",
        "daily": 7,
        "handled": True,
        "frames": [frame("src/cart/api.ts", "updateQuantity", 33, ["export async function updateQuantity(id: string, n: number) {", "  const body = JSON.stringify({ n });", "  const answer = await fetch(`/api/cart/${id}`, { method: 'PUT', body });", "  if (!answer.ok) throw new CartError(answer.status);", "}"])],
    },
    {
        "type": "IntegrityError",
        "value": 'duplicate key value violates unique constraint "orders_number_key"',
        "transaction": "POST /api/orders",
        "platform": "python",
        "daily": 2.4,
        "from": 24.2,
        "frames": DJANGO + [frame("shop/orders/models.py", "next_number", 77, ["    def next_number(cls):", "        last = cls.objects.order_by('-number').first()", "        return cls.objects.create(number=last.number + 1)", "", "    def mark_paid(self, payment):"])],
    },
    {
        "type": "ValidationError",
        "value": "Postal code does not match the country",
        "transaction": "/checkout/address",
        "platform": "javascript",
        "daily": 5,
        "level": "warning",
        "handled": True,
        "frames": [frame("src/checkout/address.ts", "validate", 58)],
    },
    {
        "type": "RangeError",
        "value": "Invalid time zone specified: Europe/Kyjiw",
        "transaction": "/account/orders",
        "platform": "javascript",
        "daily": 1.6,
        "frames": [frame("src/time/format.ts", "formatDay", 9)],
    },
    {
        "type": "OutOfMemory",
        "value": "Cannot allocate 268435456 bytes for image resize",
        "transaction": "images.resize",
        "platform": "python",
        "daily": 0.9,
        "level": "fatal",
        "handled": False,
        "frames": [frame("shop/images/resize.py", "thumbnail", 44)],
    },
    {
        "type": "KeyError",
        "value": "'shipping_zone'",
        "transaction": "GET /api/shipping",
        "platform": "python",
        "daily": 3.2,
        "from": 6.9,
        "frames": DJANGO + [frame("shop/shipping/zones.py", "zone_of", 29)],
    },
    {
        "type": "UnhandledRejection",
        "value": "Object captured as promise rejection with keys: code, message",
        "transaction": "/",
        "platform": "javascript",
        "daily": 2.2,
        "handled": False,
        "frames": [frame("src/home/Recommendations.tsx", "load", 27)],
    },
    {
        "type": "StockMismatch",
        "value": "Warehouse reports 0 of SKU-20418, shop sold 2",
        "transaction": "stock.sync",
        "platform": "python",
        "daily": 1.2,
        "frames": [frame("shop/stock/sync.py", "reconcile", 103)],
    },
    {
        "type": "SecurityError",
        "value": "Blocked a frame with origin \"https://shop.example\" from accessing a cross-origin frame",
        "transaction": "/checkout/3ds",
        "platform": "javascript",
        "daily": 1.8,
        "from": 1.8,
        "handled": False,
        "frames": [frame("src/checkout/ThreeDSecure.tsx", "onMessage", 52)],
    },
    {
        "type": "",
        "value": "Voucher service is slow: answered after 4.2 s",
        "transaction": "vouchers.check",
        "platform": "python",
        "daily": 2.6,
        "level": "warning",
        "frames": [],
    },
]
# Types of errors that the team resolved or ignored.
RESOLVED = ["RangeError"]
IGNORED = ["ValidationError"]

SEGMENTS = [
    {"key": "staff", "name": "Staff", "conditions": [{"attribute": "email", "operator": "ends_with", "values": ["@shop.example"]}]},
    {"key": "beta-testers", "name": "Beta testers", "conditions": [{"attribute": "plan", "operator": "in", "values": ["gold"]}, {"attribute": "appVersion", "operator": "semver_greater_than_or_equal", "values": ["2.5.0"]}]},
]

FLAGS = [
    {
        "key": "new-checkout",
        "name": "New checkout",
        "type": "boolean",
        "enabled": True,
        "description": "One page instead of four steps.",
        "rules": [
            {"name": "Staff first", "conditions": [{"operator": "in_segment", "values": ["staff"]}], "serve": {"variant": "on"}},
            {"name": "Germany, new app", "conditions": [{"attribute": "country", "operator": "in", "values": ["DE", "AT"]}, {"attribute": "appVersion", "operator": "semver_greater_than_or_equal", "values": ["2.5.0"]}], "serve": {"rollout": [{"variant": "on", "weight": 50}, {"variant": "off", "weight": 50}]}},
        ],
        "fallthrough": {"rollout": [{"variant": "on", "weight": 5}, {"variant": "off", "weight": 95}]},
    },
    {
        "key": "search-ranking",
        "name": "Search ranking",
        "type": "string",
        "enabled": True,
        "description": "Model that ranks the results.",
        "variants": [{"key": "classic", "name": "Classic", "value": "bm25"}, {"key": "vectors", "name": "Vectors", "value": "hybrid-v2"}, {"key": "popular", "name": "Popular first", "value": "popularity"}],
        "fallthrough": {"rollout": [{"variant": "classic", "weight": 80}, {"variant": "vectors", "weight": 15}, {"variant": "popular", "weight": 5}]},
    },
    {"key": "express-delivery", "name": "Express delivery", "type": "boolean", "enabled": True, "prerequisites": [{"flagKey": "new-checkout", "variant": "on"}]},
    {"key": "free-shipping-from", "name": "Free shipping from", "type": "number", "enabled": True, "variants": [{"key": "usual", "value": "49"}, {"key": "sale", "value": "29"}], "fallthrough": {"variant": "usual"}},
    {"key": "banner", "name": "Banner on the start page", "type": "json", "enabled": False, "variants": [{"key": "autumn", "value": '{"title": "Autumn sale", "color": "amber"}'}]},
    {"key": "gift-cards", "name": "Gift cards", "type": "boolean", "enabled": False},
    {"key": "dark-mode", "name": "Dark mode", "type": "boolean", "enabled": True, "targets": [{"kind": "identifier", "value": "user-17", "variant": "on"}], "fallthrough": {"rollout": [{"variant": "on", "weight": 1}, {"variant": "off", "weight": 1}]}},
]

# Changes of the flags after their creation.
FLAG_CHANGES = [
    ("new-checkout", {"fallthrough": {"rollout": [{"variant": "on", "weight": 20}, {"variant": "off", "weight": 80}]}}),
    ("new-checkout", {"fallthrough": {"rollout": [{"variant": "on", "weight": 5}, {"variant": "off", "weight": 95}]}, "description": "One page instead of four steps. Reduced because the address form loses input."}),
    ("gift-cards", {"enabled": True}),
    ("gift-cards", {"enabled": False, "description": "Waits for the tax office."}),
]

# Title, description, pain points per day in the last 30 and the preceding 30 days, and visitor actions.
INSIGHTS = [
    ("Pay button does nothing", "Seen since 2.5.0, most often on phones.", 4.2, 0.4, ["Clicked five times", "Left the page", "Went back to the cart", "Reloaded the page"]),
    ("Voucher code is rejected without a reason", "", 1.6, 1.3, ["Typed the code again", "Pasted the code", "Opened the help", "Left the page"]),
    ("Search filters are overlooked", "Visitors scroll past them.", 1.1, 2.4, ["Scrolled up and down", "Typed the size into the search"]),
    ("Size table covers the buy button", "", 0.5, 0.0, ["Closed the table", "Turned the phone"]),
    ("Address form loses input", "After a postal code error.", 0.9, 1.0, ["Typed the address again", "Left the page"]),
]
