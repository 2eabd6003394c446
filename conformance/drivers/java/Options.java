import com.alibaba.fastjson.JSONObject;
import java.lang.reflect.Method;

/** Sets the properties of clients by name, so that every option of every version is within reach. */
final class Options {
    private Options() {
    }

    /** How often a client looks for routes, retry topics among them: every 30 s unless it is told. */
    private static final int LOOK_FOR_ROUTES_MS = 2000;

    /** How long routes and the like may take: 3 s unless it is told, too little on a machine full of work. */
    private static final int API_TIMEOUT_MS = 15000;

    static void apply(Object client, JSONObject options) throws Exception {
        set(client, "pollNameServerInterval", LOOK_FOR_ROUTES_MS);
        set(client, "mqClientApiTimeout", API_TIMEOUT_MS);
        if (options == null) {
            return;
        }
        for (String name : options.keySet()) {
            set(client, name, options.get(name));
        }
    }

    static void set(Object client, String name, Object value) throws Exception {
        String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
        for (Method method : client.getClass().getMethods()) {
            if (method.getName().equals(setter) && method.getParameterCount() == 1) {
                method.invoke(client, convert(value, method.getParameterTypes()[0]));
                return;
            }
        }
        throw new UnsupportedOperationException(client.getClass().getSimpleName() + " has no " + setter);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object convert(Object value, Class<?> type) {
        String text = String.valueOf(value);
        if (type == int.class) {
            return Integer.parseInt(text);
        }
        if (type == long.class) {
            return Long.parseLong(text);
        }
        if (type == boolean.class) {
            return Boolean.parseBoolean(text);
        }
        if (type.isEnum()) {
            return Enum.valueOf((Class) type, text);
        }
        return text;
    }
}
