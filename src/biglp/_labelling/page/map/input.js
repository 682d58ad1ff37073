// Pointer and keyboard on the map, turned into what they mean.
//   move(dx, dy), zoom(factor, px, py), all()       the view
//   hover(px, py) / leave(), click(px, py)          one row
//   drawing(corners), drawn(corners)                the lasso
//   brush(dx, dy), brushSize(factor), brushTake(), brushEnd()

const CLICK_PX = 4;
const STEP = 0.06;

/** The same meanings for wheel, mouse, fingers and keys. `lassoing()` tells what a drag does. */
export function listenTo(element, lassoing, act) {
  const fingers = new Map();
  let start = null;
  let corners = [];

  const at = (event) => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    start = at(event);
    corners = lassoing() || event.shiftKey ? [start] : [];
  });

  element.addEventListener("pointermove", (event) => {
    const now = at(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      act.hover(...now);
      return;
    }
    if (fingers.size === 2) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const span = (place) => Math.hypot(place[0] - other[0], place[1] - other[1]);
      act.zoom(span(now) / Math.max(1, span(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      corners = [];
      start = null;
    } else if (corners.length > 0) {
      corners.push(now);
      act.drawing(corners);
    } else {
      act.move(now[0] - before[0], now[1] - before[1]);
    }
    fingers.set(event.pointerId, now);
  });

  const up = (event) => {
    if (!fingers.delete(event.pointerId)) return;
    const now = at(event);
    const drawn = corners;
    corners = [];
    const still = start && Math.hypot(now[0] - start[0], now[1] - start[1]) < CLICK_PX;
    if (event.type === "pointercancel") act.drawing([]);
    else if (drawn.length > 2) act.drawn(drawn);
    else if (still && drawn.length < 3) act.click(...now);
    start = null;
  };
  element.addEventListener("pointerup", up);
  element.addEventListener("pointercancel", up);
  element.addEventListener("pointerleave", () => act.leave());
  element.addEventListener("blur", () => act.brushEnd());
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    act.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016)), ...at(event));
  }, { passive: false });

  const keys = {
    ArrowLeft: () => act.brush(-STEP, 0),
    ArrowRight: () => act.brush(STEP, 0),
    ArrowUp: () => act.brush(0, -STEP),
    ArrowDown: () => act.brush(0, STEP),
    "+": () => act.zoomKey(1.5),
    "=": () => act.zoomKey(1.5),
    "-": () => act.zoomKey(1 / 1.5),
    "[": () => act.brushSize(1 / 1.3),
    "]": () => act.brushSize(1.3),
    Enter: () => act.brushTake(),
  };
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !(event.key in keys)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
}
